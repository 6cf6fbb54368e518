#!/usr/bin/env bash
# What `loopwarden verify` is compared with: checks on a report as they are written by hand. PYTHON REPORT
set -u
python=$1
report=$2

fail() {
    echo "FAIL: $1"
    exit 1
}

[ -s "$report" ] || fail "exists"
"$python" -c '
import json, sys
json.load(open(sys.argv[1]))
' "$report" 2>/dev/null || fail "parses"
"$python" -c '
import json, sys
report = json.load(open(sys.argv[1]))
assert report["status"] and report["result"]["total"] and all(item["id"] is not None for item in report["items"])
' "$report" 2>/dev/null || fail "fields"
"$python" -c '
import json, sys, time
report = json.load(open(sys.argv[1]))
assert -60 <= time.time() - report["timestamp"] <= 86400
' "$report" 2>/dev/null || fail "fresh"
"$python" -c '
import json, sys
assert json.load(open(sys.argv[1]))["status"] in ("ok", "partial", "failed")
' "$report" 2>/dev/null || fail "status"
echo "pass"

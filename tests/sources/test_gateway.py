"""Lines of the gateway's log: what makes a call, and what is made of odd ones."""

import json
import math
import tracemalloc
from datetime import UTC, datetime, tzinfo
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.sources import gateway
from jobs.sources.gateway import parse
from jobs.thrash.call import ToolCall
from jobs.thrash.fingerprint import fingerprint

NOON = 1767225600
PLAIN = {"ts": NOON, "agentId": "main", "tool": "exec"}


def read(line: bytes) -> ToolCall:
    calls = parse(line)
    assert calls is not None
    (call,) = calls
    # What most lines become is a kind of call of the parser's own.
    return ToolCall(**{name: getattr(call, name) for name in ToolCall.__struct_fields__})


def read_with(**fields: object) -> ToolCall:
    return read(json.dumps(PLAIN | fields).encode())


def shown(value: object) -> str:
    return repr(value)[-40:]


def test_a_line_is_a_call() -> None:
    line = (
        b'{"ts": 1767225600.5, "agentId": "scout", "sessionId": "s-1", "parentId": "main", "tool": "exec",'
        b' "args": {"command": "ls"}, "result": "a b", "result_hash": "77de68da", "pid": 4711,'
        b' "is_error": true, "tokens": 812}'
    )
    assert read(line) == ToolCall(
        session="s-1",
        agent="scout",
        parent="main",
        ts=1767225600.5,
        tool="exec",
        args=b'{"command": "ls"}',
        pid=4711,
        is_error=True,
        tokens=812,
    )


def test_agent_tool_and_time_are_enough() -> None:
    assert read_with() == ToolCall(session="main", agent="main", ts=NOON, tool="exec", args=b"null")


def test_arguments_are_the_bytes_that_the_log_wrote() -> None:
    line = json.dumps(PLAIN | {"args": [1], "result": "x" * 100_000}).encode()
    assert type(read(line).args) is bytes
    assert read(line).args == b"[1]"


# ── times ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("ts", "expected"),
    [
        (0, 0),
        (0.25, 0.25),
        (NOON, NOON),
        (1e11, 1e11),
        (1767225600123, NOON + 0.123),
        (253402300799999, 253402300799.999),
        ("1767225600.5", NOON + 0.5),
        (" 1767225600123 ", NOON + 0.123),
        ("1.7672256e9", NOON),
        ("2026-01-01T00:00:00Z", NOON),
        ("2026-01-01T00:00:00", NOON),
        ("2026-01-01T01:30:00.250+01:30", NOON + 0.25),
        ("2026-01-01 00:00:00", NOON),
        ("2026-01-01 00:00:00,250", NOON + 0.25),
        ("2026-01-01", NOON),
        ("20260101T000000Z", NOON),
    ],
    ids=shown,
)
def test_times_are_seconds_milliseconds_or_iso(ts: object, expected: float) -> None:
    assert read_with(ts=ts).ts == expected


@pytest.mark.parametrize(
    "ts",
    [
        "9999-12-31T23:59:59-23:59",
        "0001-01-01T00:00:00+23:59",
        "1969-12-31T23:59:59Z",
        -1,
        "-1",
        253402300800000,
        1767225600123456,
        10**400,
        math.nan,
        math.inf,
        "nan",
        "inf",
        "-Infinity",
        "9" * 5000,
        "",
        "yesterday",
        "2026-02-30T00:00:00Z",
        "\0",
        True,
        None,
        [NOON],
        {"$date": NOON},
    ],
    ids=shown,
)
def test_what_is_no_time_between_1970_and_9999_is_unreadable(ts: object) -> None:
    assert parse(json.dumps(PLAIN | {"ts": ts}).encode()) is None


@given(st.floats(86_400, 253_402_000_000), st.timezones())
def test_any_iso_time_is_read_as_it_was_meant(seconds: float, zone: tzinfo) -> None:
    utc = datetime.fromtimestamp(seconds, UTC)
    for text in (utc.isoformat(), utc.astimezone(zone).isoformat(), utc.replace(tzinfo=None).isoformat()):
        assert read_with(ts=text).ts == pytest.approx(seconds, abs=1e-3)


# ── optional fields ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("field", "given_as", "attribute", "expected"),
    [
        ("pid", 1, "pid", 1),
        ("pid", "4711", "pid", 4711),
        ("pid", 4711.0, "pid", 4711),
        ("pid", 4711.5, "pid", None),
        ("pid", 0, "pid", None),
        ("pid", -1, "pid", None),
        ("pid", "-1", "pid", None),
        ("pid", 2**31, "pid", None),
        ("pid", 10**30, "pid", None),
        ("pid", "abc", "pid", None),
        ("pid", "", "pid", None),
        ("pid", True, "pid", None),
        ("pid", None, "pid", None),
        ("pid", [1], "pid", None),
        ("tokens", 0, "tokens", 0),
        ("tokens", 12.0, "tokens", 12),
        ("tokens", 12.5, "tokens", None),
        ("tokens", "12", "tokens", 12),
        ("tokens", "9" * 5000, "tokens", None),
        ("tokens", -5, "tokens", None),
        ("tokens", 10**13, "tokens", None),
        ("tokens", "many", "tokens", None),
        ("tokens", False, "tokens", None),
        ("tokens", {"total": 5}, "tokens", None),
        ("is_error", None, "is_error", False),
        ("is_error", 1, "is_error", True),
        ("is_error", 0, "is_error", False),
        ("is_error", "timeout", "is_error", True),
        ("is_error", "False", "is_error", False),
        ("is_error", "", "is_error", False),
        ("is_error", {"code": 1}, "is_error", True),
        ("is_error", [], "is_error", False),
        ("sessionId", "s", "session", "s"),
        ("sessionId", "", "session", "main"),
        ("sessionId", None, "session", "main"),
        ("sessionId", 42, "session", "42"),
        ("sessionId", [], "session", "main"),
        ("sessionId", True, "session", "main"),
        ("parentId", "", "parent", None),
        ("parentId", None, "parent", None),
        ("parentId", 7, "parent", "7"),
        ("parentId", {}, "parent", None),
        ("agentId", 7, "agent", "7"),
        ("agentId", 7, "session", "7"),
        ("args", None, "args", b"null"),
        ("args", "ls", "args", b'"ls"'),
        ("args", ["ls", 1], "args", b'["ls", 1]'),
        ("args", 0.5, "args", b"0.5"),
        ("args", False, "args", b"false"),
        ("args_hash", "9b74", "args_hash", "9b74"),
        ("args_hash", 12345, "args_hash", "12345"),
        ("args_hash", "", "args_hash", None),
        ("args_hash", {}, "args_hash", None),
        ("result", {"a": []}, "tool", "exec"),
    ],
    ids=shown,
)
def test_an_optional_field_of_an_odd_type_does_not_lose_the_call(
    field: str, given_as: object, attribute: str, expected: object
) -> None:
    value = getattr(read_with(**{field: given_as}), attribute)
    assert value == expected
    assert type(value) is type(expected)


def test_a_hash_counts_only_where_there_are_no_arguments() -> None:
    assert read_with(args={"a": 1}, args_hash="x").args_hash is None
    assert read_with(args={"a": 1}, args_hash=7).args_hash is None
    assert read_with(args=None, args_hash="x").args_hash == "x"


def test_of_a_key_given_twice_the_last_counts() -> None:
    line = (
        b'{"ts": 1, "tool": "", "agentId": 5, "args": 1, "pid": "x",'
        b' "ts": 2, "tool": "exec", "agentId": "main", "args": 2, "pid": 6}'
    )
    assert read(line) == ToolCall(session="main", agent="main", ts=2, tool="exec", args=b"2", pid=6)


# ── names ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "name", ["x", " ", "größe", "\u202e\u200b\u2066", "a\u0000b", "🦇", "a\nb", "n" * 200]
)
def test_names_are_kept_as_they_are(name: str) -> None:
    call = read_with(agentId=name, tool=name, sessionId=name, parentId=name)
    assert [call.agent, call.tool, call.session, call.parent] == [name] * 4


@given(st.text(min_size=201, max_size=400), st.text(min_size=1, max_size=10))
def test_long_names_become_short_and_stay_apart(name: str, more: str) -> None:
    short, other = (read_with(agentId=text, pid="x").agent for text in (name, name + more))
    assert short != other
    assert short.startswith(name[:100])
    assert len(short) <= 200


def test_a_name_of_a_megabyte_is_shortened_wherever_it_stands() -> None:
    name = "n" * 1_000_000
    call = read_with(agentId=name, tool=name, sessionId=name, parentId=name, args_hash=name)
    assert {call.agent, call.tool, call.session, call.parent, call.args_hash} == {call.agent}
    assert len(call.agent) <= 200
    assert len(read_with(agentId=10**300).agent) <= 200


# ── what cannot be read ───────────────────────────────────────────────────────────────────────────

DEEP = b"[" * 100_000 + b"]" * 100_000
CALL = b'{"ts": 1, "agentId": "main", "tool": "exec", %b}'


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"\xef\xbb\xbf" + CALL % b'"pid": 1', id="byte order mark"),
        pytest.param(CALL % b'"sessionId": "\xff"', id="a byte that is no text"),
        pytest.param(CALL % b'"sessionId": "\xed\xa0\x80"', id="a surrogate in UTF-8"),
        pytest.param(CALL % b'"sessionId": "a\0b"', id="bare NUL in a name"),
        pytest.param(CALL % b'"parentId": "\\ud8"', id="an escape cut short"),
        pytest.param(CALL % b'"parentId": "\\UD800"', id="an escape in capitals"),
        pytest.param(CALL % b'"tokens": NaN', id="NaN"),
        pytest.param(CALL % b'"tokens": 1e999', id="beyond a float"),
        pytest.param(CALL % b'"args": Infinity', id="Infinity in the arguments"),
        pytest.param(CALL % (b'"args": ' + DEEP), id="deep arguments"),
        pytest.param(CALL % (b'"result": ' + DEEP), id="deep result"),
        pytest.param(CALL % (b'"pid": ' + DEEP), id="deep pid"),
        pytest.param(CALL % b"'pid': 1", id="single quotes"),
        pytest.param(CALL[:-1] % b'"pid": 1', id="no end"),
        pytest.param(b"\0" * 1000, id="NULs, as a crash leaves them"),
        pytest.param(b"[" * 1_000_000, id="a million brackets"),
        pytest.param(b"\x1f\x8b\x08\x00", id="gzip"),
    ],
)
def test_a_line_that_is_no_sound_json_is_unreadable(line: bytes) -> None:
    assert parse(line) is None


@pytest.mark.parametrize("args", [b'"\xff"', b'{"a": "\xc3"}', b"[" * 900 + b"]" * 900], ids=shown)
def test_arguments_that_hide_something_unreadable_do_not_hide_the_call(args: bytes) -> None:
    """They are compared as they were written."""
    call = read(CALL % (b'"args": ' + args))
    assert call.args == args
    assert fingerprint(call.args, 100)


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        (rb"\ud83e", rb"\ufffd"),
        (rb"\uDD87", rb"\ufffd"),
        (rb"a\ud83eb", rb"a\ufffdb"),
        (rb"\udd87\ud83e", rb"\ufffd\ufffd"),
        (rb"\ud83e\ud83e\udd87", rb"\ufffd\ud83e\udd87"),
        (rb"\ud83e\n", rb"\ufffd\n"),
        (rb"\\ud83e \ud83e", rb"\\ud83e \ufffd"),
        (rb"\\\ud83e", rb"\\\ufffd"),
        (rb"\ud83e\udd87 \u00fc", rb"\ud83e\udd87 \u00fc"),
    ],
)
def test_half_a_character_as_a_cut_text_ends_in_does_not_hide_the_call(
    written: bytes, read_as: bytes
) -> None:
    """JSON may hold half of a surrogate pair, and writers leave it where they cut at a number of UTF-16 units."""
    args = b'{"text": "%b", "now": 1}'
    assert read(CALL % (b'"args": ' + args % written)).args == args % read_as
    assert read(CALL % (b'"result": "%b"' % written)).tool == "exec"
    assert read(CALL % (b'"result": "%b", "pid": "7"' % written)).pid == 7
    assert read(CALL % (b'"sessionId": "%b"' % written)).session == json.loads(b'"%b"' % read_as)


def test_an_odd_field_full_of_brackets_takes_no_more_memory_than_its_line() -> None:
    line = CALL % (b'"pid": [' + b"[]," * 300_000 + b"[]]")
    tracemalloc.start()
    assert read(line).pid is None
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3 * len(line)


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.sampled_from(["main", NOON]),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
names = [
    "ts",
    "agentId",
    "tool",
    "args",
    "args_hash",
    "sessionId",
    "parentId",
    "pid",
    "is_error",
    "tokens",
    "result",
]


@given(st.dictionaries(st.sampled_from(names), anything), st.booleans())
def test_whatever_the_fields_hold_a_call_that_is_read_is_sound(
    fields: dict[str, Any], is_ascii: bool
) -> None:
    line = json.dumps(PLAIN | fields, ensure_ascii=is_ascii).encode(errors="surrogatepass")
    for call in parse(line) or ():
        texts = [call.session, call.agent, call.tool, call.parent or "", call.args_hash or ""]
        assert all(len(text.encode()) <= 800 for text in texts)
        assert all([call.session, call.agent, call.tool])
        assert 0 <= call.ts < 253402300800
        assert call.pid is None or 0 < call.pid < 2**31
        assert call.tokens is None or 0 <= call.tokens <= 10**12
        assert type(call.is_error) is bool
        msgspec.json.decode(call.args)


@given(st.dictionaries(st.sampled_from(names), anything))
def test_what_is_read_quickly_is_what_a_careful_look_finds(fields: dict[str, Any]) -> None:
    """Most lines never come to the second parser, and it would say the same of them."""
    line = json.dumps(PLAIN | fields).encode()
    careful = gateway._parse_odd(line)
    assert [read(line)] == list(careful) if careful else parse(line) is None

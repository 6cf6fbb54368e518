"""An agent for tests of processes: it logs its tool calls as a gateway does, and says on standard output what befalls it.

usage: agent.py LOG NAME stuck|busy [ignores-sigterm]
"""

import itertools
import json
import os
import signal
import sys
import time
from pathlib import Path

PACE = 0.02
"""Seconds between calls."""
ENOUGH = 10
"""Calls to tell by whether it is stuck."""


def say(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def make_calls(log: Path, name: str, *, is_stuck: bool) -> None:
    """Log one call after another, the same one or always another, until killed or left alone."""
    parent = os.getppid()
    for number in itertools.count(1):
        path = "notes/todo.md" if is_stuck else f"chapter-{number}/" * 5
        line = {"ts": time.time(), "agentId": name, "pid": os.getpid()}  # noqa: TID251 - a foreign program
        line |= {"tool": "read_file", "args": {"path": path}, "tokens": 850}
        with log.open("a") as file:
            file.write(json.dumps(line) + "\n")
        if number == ENOUGH:
            say("working")
        time.sleep(PACE)
        if os.getppid() != parent:
            return


if __name__ == "__main__":
    if "ignores-sigterm" in sys.argv:
        signal.signal(signal.SIGTERM, lambda *_: say("SIGTERM ignored"))
    make_calls(Path(sys.argv[1]), sys.argv[2], is_stuck=sys.argv[3] == "stuck")

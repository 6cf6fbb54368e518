"""A toy agent: a process of its own that logs its tool calls as a gateway does.

usage: python -m bot.demo.toy_agent stuck|busy LOG
"""

import itertools
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PACE: Final = 0.6
"""Seconds between calls."""
_MODULES: Final = (
    *("payment", "checkout", "delivery", "warehouse", "accounts", "invoices", "reminders", "newsletter"),
    *("permissions", "translation", "thumbnails", "statistics"),
)
_CHANGES: Final = (
    *("a timeout for every outgoing call", "retries with a growing pause", "errors that name the order"),
    *("no more global state", "a cache for the price list", "dates with a time zone", "rounding to the cent"),
)


def main(kind: str, log: Path) -> None:
    """Make calls until killed, or until the process that started this one is gone."""
    parent = os.getppid()
    for tool, args, result in _stuck() if kind == "stuck" else _busy():
        _log(log, f"{kind}-agent", tool, args, result)
        time.sleep(_PACE)
        if os.getppid() != parent:
            return


def _stuck() -> Iterator[tuple[str, dict[str, object], str]]:
    attempt = 0
    while True:
        attempt += 1
        yield (
            "read_file",
            {"path": "notes/todo.md", "request_id": f"req-{attempt}"},
            "No such file: notes/todo.md",
        )


def _busy() -> Iterator[tuple[str, dict[str, object], str]]:
    for change, module in itertools.cycle(itertools.product(_CHANGES, _MODULES)):
        yield "search", {"query": f"where {module} needs {change}"}, f"2 matches in src/{module}"
        yield "write_file", {"path": f"src/{module}/service.py", "why": change}, "written"
        yield "run_tests", {"suite": module, "after": change}, "41 passed"


def _log(log: Path, agent: str, tool: str, args: dict[str, object], result: str) -> None:
    line = {"ts": time.time(), "agentId": agent, "pid": os.getpid(), "tool": tool, "args": args}  # noqa: TID251 - a foreign program
    line |= {"result": result, "tokens": 850}
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

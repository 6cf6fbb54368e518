"""A toy agent: a process of its own that logs its tool calls as a gateway does.

usage: python -m bot.demo.toy_agent stuck|busy LOG
"""

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_PACE: Final = 0.6
"""Seconds between calls."""
_WORK: Final = (
    ("read_file", {"path": "docs/architecture-overview.md"}, "The service has three parts ..."),
    ("search", {"query": "retry policy of the payment client"}, "4 matches in src/payment"),
    ("read_file", {"path": "src/payment/client.py"}, "class PaymentClient: ..."),
    ("write_file", {"path": "src/payment/backoff.py", "bytes": 1840}, "written"),
    ("run_tests", {"suite": "payment", "verbose": True}, "17 passed"),
    ("read_file", {"path": "src/orders/checkout_flow.py"}, "def checkout(order): ..."),
    ("search", {"query": "who calls checkout without a timeout"}, "2 matches in src/orders"),
    ("write_file", {"path": "src/orders/timeouts.py", "bytes": 612}, "written"),
    ("run_tests", {"suite": "orders-and-delivery"}, "41 passed"),
    ("commit", {"message": "orders: every outgoing call has a timeout"}, "3 files changed"),
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
    chapter = 0
    while True:
        chapter += 1
        for tool, args, result in _WORK:
            yield tool, {**args, "chapter": f"part {chapter} of the migration"}, result


def _log(log: Path, agent: str, tool: str, args: dict[str, object], result: str) -> None:
    line = {"ts": time.time(), "agentId": agent, "pid": os.getpid(), "tool": tool, "args": args}  # noqa: TID251 - a foreign program
    line |= {"result": result, "tokens": 850}
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))

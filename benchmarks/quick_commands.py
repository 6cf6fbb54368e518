"""How quickly the commands start that a hook, a script or a health check runs again and again.

- Time of `loopwarden --version` over that of `python -c "import argparse, sqlite3"`: wanted <= 3.
- The same for `loopwarden health` (which finds no bot running, and says so): wanted <= 3.
- `loopwarden hook` that keeps a call, and `python -m bot hook`, over `python -c "import json"`: wanted <= 3.
"""

import asyncio
import json
import os
import sys
import tempfile
from asyncio.subprocess import DEVNULL, PIPE
from pathlib import Path
from time import perf_counter
from typing import Final

from benchmarks.rounds import Side, fastest, report

_ROUNDS: Final = 25
_LOOPWARDEN: Final = str(Path(sys.executable).with_name("loopwarden"))


_CALL: Final = json.dumps(
    {
        "session_id": "d4ea",
        "transcript_path": "/home/me/.claude/projects/-home-me-code/d4ea.jsonl",
        "cwd": "/home/me/code",
        "hook_event_name": "PostToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "cat status.txt", "description": "Look again"},
        "tool_response": {"stdout": "pending" * 100, "stderr": "", "interrupted": False},
        "tool_use_id": "toolu_01",
    }
).encode()


def _running(*argv: str, data: str) -> Side:
    environment = os.environ | {"LOOPWARDEN_DATA_DIR": data}

    async def run() -> float:
        start = perf_counter()
        process = await asyncio.create_subprocess_exec(
            *argv, env=environment, stdin=PIPE, stdout=DEVNULL, stderr=DEVNULL
        )
        await process.communicate(_CALL)  # only the hook reads it
        return perf_counter() - start

    return run


async def _main() -> None:
    with tempfile.TemporaryDirectory() as data:
        python, version, health, least, hook, module = await fastest(
            _ROUNDS,
            _running(sys.executable, "-c", "import argparse, sqlite3", data=data),
            _running(_LOOPWARDEN, "--version", data=data),
            _running(_LOOPWARDEN, "health", data=data),
            _running(sys.executable, "-c", "import json", data=data),
            _running(_LOOPWARDEN, "hook", "claude-code", data=data),
            _running(sys.executable, "-m", "bot", "hook", "claude-code", data=data),
        )
    report("loopwarden --version / python that imports argparse and sqlite3", version / python, "<= 3.00")
    report("loopwarden health / the same", health / python, "<= 3.00")
    report("loopwarden hook / python that imports json", hook / least, "<= 3.00")
    report("python -m bot hook / the same", module / least, "<= 3.00")


if __name__ == "__main__":
    asyncio.run(_main())

"""Makes gateway logs of agents that get on with their work: lines of about 300 bytes, two a second."""

import json
import random
from collections.abc import Iterable, Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import Final

MB: Final = 1_000_000
_TOOLS: Final = ("exec", "read_file", "edit_file", "web_search")
_WORDS: Final = (
    "parser",
    "config",
    "deploy",
    "retry",
    "schema",
    "fixture",
    "queue",
    "index",
    "docs",
    "build",
)
_SECONDS_PER_LINE: Final = 0.5


def lines(agents: int, start: float, seed: int = 1) -> Iterator[bytes]:
    """Yield lines without end, of so many agents in turn, the first at `start` (epoch seconds)."""
    dice = random.Random(seed)
    ts = start
    while True:
        agent = dice.randrange(agents)
        call = {
            "ts": round(ts, 3),
            "agentId": f"agent-{agent}",
            "sessionId": f"session-{agent}",
            "tool": dice.choice(_TOOLS),
            "args": {
                "path": "/srv/app/" + "/".join(dice.choices(_WORDS, k=3)),
                "command": " ".join(dice.choices(_WORDS, k=13)),
                "line": dice.randrange(2000),
            },
            "pid": 4000 + agent,
            "is_error": dice.random() < 1 / 20,
            "tokens": dice.randrange(3000),
        }
        yield json.dumps(call).encode() + b"\n"
        ts += _SECONDS_PER_LINE


def up_to(size: int, pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Pass pieces on until they are `size` bytes together."""
    for piece in pieces:
        yield piece
        size -= len(piece)
        if size <= 0:
            return


def repeated(size: int, lines_of: Iterator[bytes]) -> Iterator[bytes]:
    """Yield blocks of lines, the same 10 MB over and over where `size` is more: a gigabyte is soon written."""
    block = b"".join(up_to(min(size, 10 * MB), lines_of))
    return up_to(size, chain([block], repeat(block)))


def append(path: Path, pieces: Iterable[bytes]) -> None:
    """Add to a log as an agent would."""
    with path.open("ab") as file:
        file.writelines(pieces)

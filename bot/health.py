"""`loopwarden health`: do the scans and the polls go on? Imports next to nothing, since it runs every minute."""

import sys
from collections.abc import Iterator
from pathlib import Path

from bot.clock import SystemClock
from bot.data_dir import data_dir
from bot.pulse import FOLDER, PROBLEM


def health() -> int:
    """Print what is wrong; return 0 if nothing is, else 1. Reads `LOOPWARDEN_DATA_DIR` itself, from the environment."""
    folder = Path(data_dir()) / FOLDER
    problems = list(_problems(folder, SystemClock().now()))
    sys.stdout.write("\n".join(problems or ["healthy"]) + "\n")
    return 1 if problems else 0


def _problems(folder: Path, now: float) -> Iterator[str]:
    try:
        files = sorted(folder.iterdir())
    except OSError as error:
        yield f"no bot has run here (LOOPWARDEN_DATA_DIR counts as the environment has it): {folder}: {error.strerror}"
        return
    for file in files:
        if file.suffix == PROBLEM:
            yield from _problem(file)
            continue
        try:
            age, limit = now - file.stat().st_mtime, float(file.read_text())
        except (OSError, ValueError):
            yield f"{file} cannot be read"
            continue
        # A sign from the future is of a clock that was set back, and says nothing of now.
        if not -limit <= age <= limit:
            yield f"the last {file.name} that worked was {age:.0f} s ago, more than {limit:.0f} s"


def _problem(file: Path) -> Iterator[str]:
    try:
        # On a full disk there is room for the file and for no word in it.
        yield file.read_text().strip() or f"the last {file.stem} did not work"
    except FileNotFoundError:
        # It works again since the folder was listed.
        return
    except (OSError, ValueError):
        yield f"{file} cannot be read"

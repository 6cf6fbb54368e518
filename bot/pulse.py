"""Signs of life for `loopwarden health`: a file for each activity, touched whenever it has worked.

Touched, not written: that works on a full disk too, and needs no database.
"""

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

FOLDER: Final = "pulse"
"""Within the data directory. A file's content is how many seconds old it may be."""
PROBLEM: Final = ".problem"
"""Suffix of a file that says why an activity does not work, where a person can do something about it."""


class Pulse:
    """Keeps the files. A disk that fails is none of its business: then health turns red by itself."""

    def __init__(self, data_dir: Path, limits: Mapping[str, float]) -> None:
        self._folder = data_dir / FOLDER
        with contextlib.suppress(OSError):
            self._folder.mkdir(exist_ok=True)
            for name, seconds in limits.items():
                self._forget_problem(name)
                (self._folder / name).write_text(f"{seconds:g}\n")

    def beat(self, name: str) -> None:
        """Note that an activity has worked just now."""
        with contextlib.suppress(OSError):
            os.utime(self._folder / name)
            self._forget_problem(name)

    def fail(self, name: str, problem: str) -> None:
        """Note why an activity does not work, where a person can do something about it."""
        with contextlib.suppress(OSError):
            (self._folder / f"{name}{PROBLEM}").write_text(f"{problem}\n")

    def _forget_problem(self, name: str) -> None:
        (self._folder / f"{name}{PROBLEM}").unlink(missing_ok=True)

"""Programs: would the system start them? Nothing is run."""

import os
import shutil
from pathlib import Path
from typing import Final

from bot.checking.finding import Finding, error, foreign

_START: Final = 256
"""Bytes of a program that tell what it is."""


def check_program(subject: str, name: str) -> Finding | None:
    """Return why the first word of an `argv` cannot be started; None if it can."""
    program = shutil.which(name)
    if program is None:
        return _not_found(subject, name)
    if flaw := _flaw(Path(program)):
        return error(subject, f"{foreign(program)} cannot be started: {flaw}", "correct it, or `argv`")
    return None


def _not_found(subject: str, program: str) -> Finding:
    shown = foreign(program)
    if "/" not in program:
        return error(
            subject, f"{shown} is not on this user's PATH", "install it, or write its full path in `argv`"
        )
    if os.access(program, os.F_OK):
        return error(subject, f"{shown} may not be executed by this user", f"chmod +x {shown}")
    return error(subject, f"{shown} is not there for this user", "correct `argv`, or install it")


def _flaw(program: Path) -> str | None:
    """Return why the system would refuse a program that this user may execute."""
    if not program.is_file():
        return "it is no regular file"
    try:
        with program.open("rb") as file:
            start = file.read(_START)
    except OSError:
        return None  # one that may be executed but not read
    if start.startswith(b"#!"):
        # Two words for what `env` is to look up.
        words = [os.fsdecode(word) for word in start[2:].split(b"\n")[0].split()[:2]] or [""]
        named = words if words[0].endswith("/env") and not words[-1].startswith("-") else words[:1]
        is_there = all(map(shutil.which, named))
        return None if is_there else "the interpreter that its first line names is not there"
    return None if b"\0" in start else "it is a script without #! and an interpreter in its first line"

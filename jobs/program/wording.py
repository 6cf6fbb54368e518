"""Words for what a program did; foreign text in them is kept as it is, but bounded, and storable."""

from collections.abc import Sequence
from typing import Final

LONGEST: Final = 200
"""Characters of one foreign text."""


def bounded(text: str) -> str:
    """Return at most `LONGEST` characters of `text`, without the lone surrogates that no database takes."""
    if len(text) > LONGEST:
        text = text[: LONGEST - 1] + "…"
    return text.encode(errors="replace").decode()


def last_line(output: bytes) -> str:
    """Return the last line of `output` that is not blank."""
    lines = output.decode(errors="replace").split("\n")
    return next((bounded(line.strip()) for line in reversed(lines) if line.strip()), "")


def ended(code: int | None) -> str:
    """Say how a program ended."""
    return (
        f"the command was ended by signal {-code}"
        if code is not None and code < 0
        else f"the command ended with exit code {code}"
    )


def overrun(code: int | None, limit: float) -> str:
    """Say that a program took too long; without a `code` it lives on."""
    return (
        f"the command did not end within {limit:g} s and {'could not be' if code is None else 'was'} killed"
    )


def not_started(program: str, error: OSError) -> str:
    """Say why a program cannot be started."""
    match error:
        case FileNotFoundError():
            return f"{bounded(program)} was not found, or the interpreter its first line names"
        case PermissionError():
            return f"{bounded(program)} may not be executed"
        case _:
            return f"{bounded(program)} could not be started: {error.strerror}"


def ran_copies(names: Sequence[str]) -> str:
    """Say that what was approved is run, though it is no longer where it was."""
    of = " and ".join(map(bounded, names))
    one = len(names) == 1
    return f"ran the approved {'copy' if one else 'copies'} of {of}, whose {'file has' if one else 'files have'} changed"


def not_approved(path: str) -> str:
    """Say why a program is not run that could be."""
    return f"{bounded(path)} is not the file that was approved"

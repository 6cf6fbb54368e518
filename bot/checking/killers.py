"""The killers: would a command start, and which processes does a `match` mean now? Nothing is run or signalled."""

import os
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final, assert_never

from bot.checking.finding import Finding, error, fine, foreign
from bot.checking.processes import check_process
from jobs.killers.argv import UnsafeArgumentError, fill_in
from jobs.ports import Target
from jobs.watchlist.killers import CommandSpec, DryRunSpec, KillerSpec, ProcessSpec

_START: Final = 256
"""Bytes of a program that tell what it is."""


def check_killer(name: str, spec: KillerSpec, now: float) -> Iterator[Finding]:
    """Rehearse a killer on a made-up session."""
    subject, target = f"killer {foreign(name)}", _sample(now)
    match spec:
        case CommandSpec():
            yield _check_command(subject, spec, target)
        case ProcessSpec():
            yield from check_process(subject, spec, target)
        case DryRunSpec():
            yield fine(subject, "only says what it would have stopped")
        case _:
            assert_never(spec)


def _sample(now: float) -> Target:
    return Target(
        source="source",
        session="SESSION",
        agent="AGENT",
        reason="thrash_loop:8",
        score=8,
        pid=None,
        pid_since_ts=None,
        last_ts=now,
    )


def _check_command(subject: str, spec: CommandSpec, target: Target) -> Finding:
    try:
        argv = fill_in(spec.argv, target)
    except UnsafeArgumentError as unsafe:
        return error(subject, foreign(str(unsafe)), "correct `argv`")
    program = shutil.which(argv[0])
    if program is None:
        return _not_found(subject, argv[0])
    if flaw := _flaw(Path(program)):
        return error(subject, f"{foreign(program)} cannot be started: {flaw}", "correct it, or `argv`")
    return fine(subject, f"would run: {foreign(shlex.join(argv), 300)}")


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

"""The killers: would a command start, and which processes does a `match` mean now? Nothing is run or signalled."""

import shlex
from collections.abc import Iterator
from typing import assert_never

from bot.checking.finding import Finding, error, fine, foreign
from bot.checking.processes import check_process
from bot.checking.programs import check_program
from jobs.killers.argv import fill_in
from jobs.ports import Target
from jobs.program.argv import UnsafeArgumentError
from jobs.watchlist.killers import CommandSpec, DryRunSpec, KillerSpec, ProcessSpec


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
    would_run = fine(subject, f"would run: {foreign(shlex.join(argv), 300)}")
    return check_program(subject, argv[0]) or would_run

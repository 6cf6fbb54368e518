"""`loopwarden verify`: did the run deliver? A line for each check; the verdict is kept, and the alert queued.

For the end of a cron line or of an agent's run, so it must start quickly: it reads no settings, and what takes long to
import is imported where it is needed. What it keeps is what the bot would have kept, whether a bot runs or not.
"""

import os
import signal
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from time import monotonic
from typing import Final, TextIO

from bot.asked import Asked, UsageError, asked_for
from bot.clock import SystemClock
from bot.data_dir import data_dir
from jobs.artifacts.find import FoundOutputs
from jobs.artifacts.judge import ArtifactJudge
from jobs.recording import Case, open_case, record
from jobs.store.blocking import BlockingStore, open_blocking
from jobs.store.schema import StoreError
from jobs.verification.checks import Ran
from jobs.verification.history import Report, Trigger
from jobs.verification.identity import names_of
from jobs.verification.spec import CommandCheck, Names
from jobs.verification.verdict import Judged, Outcome, Past
from jobs.watchlist.error import WatchlistError

_ENDING: Final = (signal.SIGTERM, signal.SIGHUP)
_BY_SIGNAL: Final = 128
"""What a shell adds to the number of a signal."""
_EXIT: Final = {Outcome.PASS: 0, Outcome.FAIL: 1, Outcome.MISSING: 1}


def verify(arguments: Sequence[str]) -> int:
    """Verify a run; return 0 if it delivered, 1 if not, 2 if it was asked wrongly."""
    try:
        asked = asked_for(arguments, os.environ)
    except UsageError as error:
        _complain(f"{error}")
        return 2
    except WatchlistError as error:
        _complain(f"the watch list is wrong: {error}")
        return 2
    try:
        with _orderly_ends():
            judged = _judged(asked)
    except UsageError as error:
        _complain(f"{error}")
        return 2
    _show(judged)
    return _EXIT[judged.verdict.outcome]


@contextmanager
def _orderly_ends() -> Iterator[None]:
    """Let no signal end the block without what it has started; one that is ignored, as under nohup, stays so."""
    heard = [number for number in _ENDING if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, _end) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _end(number: int, _: object) -> None:
    sys.exit(_BY_SIGNAL + number)


def _judged(asked: Asked) -> Judged:
    """Judge the run and keep the verdict. Where the database cannot be used, the verdict is all there is."""
    now = SystemClock().now()
    report = Report(workflow=asked.spec.name, by=Trigger.COMMAND, at=now, reported=asked.run)
    judged: Judged | None = None
    try:
        with open_blocking(data_dir()) as store:
            case = _case(store, asked, report)
            start = monotonic()
            judged = _judge(asked, case.names, now, case.past)
            store.write(record(store.tables, case, judged, now=now, took=monotonic() - start))
    except StoreError as error:
        _complain(f"warning: the verdict is not kept: {error}")
    return judged or _judge(asked, names_of(asked.spec, report, asked.zone), now, Past())


def _case(store: BlockingStore, asked: Asked, report: Report) -> Case:
    state = store.read(store.tables.workflows.get(asked.spec.name))
    if asked.is_default and state and state.judged_until:
        # A pass by the defaults would close an alert of checks that were never tried.
        raise UsageError(f"the bot watches {asked.spec.name}: let LOOPWARDEN_WATCHLIST name its watch list")
    output = FoundOutputs().newest(asked.spec, names_of(asked.spec, report, asked.zone))
    return store.read(open_case(store.tables, asked.spec, report, output, now=report.at, zone=asked.zone))


def _judge(asked: Asked, names: Names, now: float, past: Past) -> Judged:
    return ArtifactJudge(_Runner()).judge(asked.spec, names, now, past, path=asked.path)


class _Runner:
    """Runs a workflow's command; most have none."""

    def run(self, command: CommandCheck, workflow: str, names: Names, path: str) -> Ran:
        from jobs.runners.command import ProcessRunner  # noqa: PLC0415 - takes longer to import than all checks take

        return ProcessRunner().run(command, workflow, names, path)


# ── what is said ──────────────────────────────────────────────────────────────────────────────────


def _show(judged: Judged) -> None:
    lines = (f"{result.check:<9}  {result.passed:<11}  {result.reason}" for result in judged.verdict.results)
    _write(sys.stdout, "".join(f"{line.rstrip()}\n" for line in lines))


def _complain(text: str) -> None:
    _write(sys.stderr, f"loopwarden: {text}\n")


def _write(stream: TextIO | None, text: str) -> None:
    if stream is None:
        return  # closed by whoever has called the command
    encoding = stream.encoding or "utf-8"
    try:
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        stream.flush()
    except OSError:
        # Whoever reads it has had enough. What the command returns is the answer, and what is still held must not
        # fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())

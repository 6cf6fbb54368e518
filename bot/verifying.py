"""`loopwarden verify`: did the run deliver? A line for each check; the verdict is kept, and the alert queued.

For the end of a cron line or of an agent's run, so it must start quickly: it reads no settings, and what takes long to
import is imported where it is needed. What it keeps is what the bot would have kept, whether a bot runs or not.
"""

import os
import sys
from collections.abc import Sequence
from time import monotonic
from typing import Final, TextIO

from bot.asked import Asked, UsageError, Words, as_written, at_path, words_of
from bot.clock import SystemClock
from bot.data_dir import data_dir
from bot.ending import orderly_ends
from bot.enforced import Said, enforced
from jobs.artifacts.copying import FileCopier
from jobs.artifacts.find import FoundOutputs
from jobs.artifacts.judge import ArtifactJudge
from jobs.keeping import good_output, to_be_kept
from jobs.recording import Case, open_case, record
from jobs.store.blocking import BlockingStore, has_database, open_blocking
from jobs.store.schema import StoreError
from jobs.verification.checks import Ran
from jobs.verification.history import Report, Trigger
from jobs.verification.identity import names_of
from jobs.verification.spec import CommandCheck, Names
from jobs.verification.trial import GoodOutput
from jobs.verification.verdict import Check, Judged, Outcome, Past
from jobs.watchlist.error import WatchlistError

_EXIT: Final = {Outcome.PASS: 0, Outcome.FAIL: 1, Outcome.MISSING: 1}
_BY_DEFAULT: Final = (
    "there is no watch list, so status, result and timestamp are asked for;"
    " which fields yours has, a watch list says"
)


def verify(arguments: Sequence[str]) -> int:
    """Verify a run; return 0 if it delivered, 1 if not, 2 if it was asked wrongly."""
    try:
        given = words_of(arguments, os.environ)
        with orderly_ends():
            judged, is_by_pin = _judged(given, _said(given))
    except UsageError as error:
        _complain(f"{error}")
        return 2
    except WatchlistError as error:
        _complain(f"the watch list is wrong: {error}")
        return 2
    _show(judged)
    return _EXIT[judged.verdict.outcome] if is_by_pin else 2


def _said(given: Words) -> Said:
    try:
        return as_written(given)
    except (UsageError, WatchlistError) as error:
        if not has_database(data_dir()):
            raise  # nothing can have been approved: no database is begun for a slip of the pen
        return error


def _judged(given: Words, said: Said) -> tuple[Judged, bool]:
    """Judge the run and keep the verdict. Where the database cannot be used, the verdict is all there is.

    Where one is there and cannot be read it is no verdict by what was pinned: then False comes with it.
    """
    now = SystemClock().now()
    judged: Judged | None = None
    was_there = has_database(data_dir())
    is_pin_known = False
    try:
        with open_blocking(data_dir()) as store:
            said = enforced(store, given, said, now, _complain)
            is_pin_known = True
            asked = at_path(said)
            case = _case(store, asked, _report(asked, now))
            start = monotonic()
            judged = _judge(asked, case.names, now, case.past)
            took = monotonic() - start
            good = None if asked.is_default else _copied(store, case, judged, now)
            store.write(record(store.tables, case, judged, now=now, took=took, good=good))
    except StoreError as error:
        _complain(
            f"warning: the verdict is not kept: {error}{'' if is_pin_known else _by_file(said, was_there)}"
        )
    if judged is not None:
        return judged, True
    if isinstance(said, Exception):
        raise said
    asked = at_path(said)
    names = names_of(asked.spec, _report(asked, now), asked.zone)
    return _judge(asked, names, now, Past()), is_pin_known or not was_there


def _by_file(said: Said, was_there: bool) -> str:
    if was_there:
        return "; what was pinned is not known: this is only what the watch list says"
    if isinstance(said, Exception) or said.is_default:
        return ""
    return "; what was pinned is not known, so the watch list counts"


def _report(asked: Asked, now: float) -> Report:
    return Report(workflow=asked.spec.name, by=Trigger.COMMAND, at=now, reported=asked.run)


def _case(store: BlockingStore, asked: Asked, report: Report) -> Case:
    state = store.read(store.tables.workflows.get(asked.spec.name))
    if asked.is_default and state and state.judged_until:
        # A pass by the defaults would close an alert of checks that were never tried.
        raise UsageError(f"the bot watches {asked.spec.name}: let LOOPWARDEN_WATCHLIST name its watch list")
    output = FoundOutputs().newest(asked.spec, names_of(asked.spec, report, asked.zone))
    return store.read(open_case(store.tables, asked.spec, report, output, now=report.at, zone=asked.zone))


def _copied(store: BlockingStore, case: Case, judged: Judged, now: float) -> GoodOutput | None:
    artifact = store.read(to_be_kept(store.tables, case.spec.name, judged))
    data = None if artifact is None else FileCopier().copy(artifact)
    if artifact is None or data is None:
        return None
    return good_output(case.spec.name, case.names, artifact, data, judged_as_of=now)


def _judge(asked: Asked, names: Names, now: float, past: Past) -> Judged:
    judged = ArtifactJudge(_Runner()).judge(asked.spec, names, now, past, path=asked.path)
    failure = judged.verdict.failure
    if asked.is_default and failure and failure.check is Check.FIELDS:
        _complain(_BY_DEFAULT)
    return judged


class _Runner:
    """Runs a workflow's command; most have none."""

    def run(self, command: CommandCheck, workflow: str, names: Names, path: str) -> Ran:
        from jobs.approved_copies import copies_in  # noqa: PLC0415 - with what it imports
        from jobs.runners.command import ProcessRunner  # noqa: PLC0415 - takes longer to import than all checks take

        return ProcessRunner(copies_in(data_dir())).run(command, workflow, names, path)


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

"""`loopwarden selftest`: does the verifier notice bad outputs? A line for each workflow; what comes of it is kept.

It needs no bot, no chat and no settings. A workflow is tried as it is pinned or, if it is not, as the watch list has it.
"""

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Final

from bot.asked import UsageError, as_written, watchlist_path, words_of
from bot.clock import SystemClock
from bot.data_dir import data_dir
from bot.ending import orderly_ends
from bot.enforced import Said, warn
from jobs.artifacts.trial import ApartTester
from jobs.contents import differing_files, with_contents
from jobs.program.wording import not_approved
from jobs.store.blocking import BlockingStore, has_database, open_blocking
from jobs.store.schema import StoreError
from jobs.verification.spec import CommandCheck
from jobs.verification.trial import MadeOf, SelfTest
from jobs.verifier_selftest import Subject, keep, pinned
from jobs.watchlist.error import WatchlistError, unknown
from jobs.watchlist.workflows import read_workflows

_MADE_OF: Final = {
    MadeOf.OUTPUT: "made of its last good output",
    MadeOf.SPECIFICATION: "made of an output made up after its specification",
}


def selftest(names: Sequence[str]) -> int:
    """Test workflows, all if none is named; return 0 if every mutant was detected, 1 if not, 2 if it was asked wrongly."""
    try:
        with orderly_ends(), ExitStack() as held:
            if not has_database(data_dir()):
                _written()  # no database is begun for a slip of the pen
            store = _opened(held)
            tests = [_tested(store, subject) for subject in _chosen(store, names)]
    except UsageError as error:
        _complain(f"{error}")
        return 2
    except WatchlistError as error:
        _complain(f"the watch list is wrong: {error}")
        return 2
    return int(any(test.result.survivors or test.result.trouble for test in tests))


def _opened(held: ExitStack) -> BlockingStore | None:
    try:
        return held.enter_context(open_blocking(data_dir()))
    except StoreError as error:
        _complain(f"warning: pins and good outputs are not known, and nothing is kept: {error}")
        return None


def _chosen(store: BlockingStore | None, names: Sequence[str]) -> Iterable[Subject]:
    subjects = _known(store)
    for name in names:
        if name not in subjects:
            raise UsageError(unknown("no workflow of that name", name, subjects))
    if not subjects:
        raise UsageError("there is no workflow: none is pinned, and the watch list has none")
    return [subjects[name] for name in dict.fromkeys(names or subjects)]


def _known(store: BlockingStore | None) -> Mapping[str, Subject]:
    pins = store.read(pinned(store.tables)) if store else {}
    try:
        return {**_written(), **pins}
    except WatchlistError:
        if not pins:
            raise
        return pins


def _written() -> Mapping[str, Subject]:
    written = read_workflows(watchlist_path(os.environ))
    return {name: Subject(spec=spec) for name, spec in written.items()}


def _said(name: str) -> Said:
    try:
        return as_written(words_of(["--", name], os.environ))
    except (UsageError, WatchlistError) as error:
        return error


def _tested(store: BlockingStore | None, subject: Subject) -> SelfTest:
    name, now = subject.spec.name, SystemClock().now()
    if store and subject.pin_id is not None:
        warn(store, _said(name), subject.spec, _complain)
    good = store.read(store.tables.good_outputs.of(name)) if store else None
    spec = with_contents(subject.spec) if subject.pin_id is None else subject.spec
    made_of, result = ApartTester().test(spec, good, now)
    test = SelfTest(workflow=name, pin_id=subject.pin_id, made_of=made_of, result=result, at=now)
    if store:
        store.write(keep(store.tables, test))
    _show(test, subject)
    return test


# ── what is said ──────────────────────────────────────────────────────────────────────────────────


def _show(test: SelfTest, subject: Subject) -> None:
    for line in _lines(test, subject):
        sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _lines(test: SelfTest, subject: Subject) -> Iterator[str]:
    result = test.result
    if test.made_of is MadeOf.NOTHING:
        yield f"{test.workflow}: nothing was tried: {result.trouble}"
        return
    command = _untried(subject.spec.command)
    trouble = f"; {result.trouble}" if result.trouble else ""
    counted = f"{result.detected} of {result.total} detected"
    yield f"{test.workflow}: {counted}, {_MADE_OF[test.made_of]}{command}{trouble}"
    for trial in result.survivors:
        yield f"  survived: {trial.mutant}, which the check {trial.check} should have caught: {trial.found}"


def _untried(command: CommandCheck | None) -> str:
    if command is None:
        return ""
    changed = () if command.files is None else differing_files(command.argv, command.folder, command.files)
    words = [f", and {not_approved(path)}" for path in changed]
    return f"; its command is not tried{words[0] if words else ''}"


def _complain(text: str) -> None:
    sys.stderr.write(f"loopwarden: {text}\n")

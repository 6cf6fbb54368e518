"""`loopwarden approve`: where no bot has ever looked, what the watch list says of a workflow counts from now on."""

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from bot.asked import UsageError, check_schema, watchlist_path
from bot.clock import SystemClock
from bot.data_dir import data_dir
from jobs.approved_copies import copies_in
from jobs.contents import not_pinned, with_contents
from jobs.pinning.change import Change
from jobs.pinning.deciding import is_first_look
from jobs.pinning.difference import difference
from jobs.pinning.kind import How, Kind
from jobs.pinning.pin import Entry, Pin, Spec, pin_of, spec_of
from jobs.store.blocking import BlockingStore, RunTables, has_database, open_blocking
from jobs.store.schema import StoreError
from jobs.thrash.policy import OnDetection
from jobs.verification.spec import WorkflowSpec
from jobs.verification.wording import one_line
from jobs.watchlist.error import WatchlistError, unknown
from jobs.watchlist.workflows import read_workflows


def approve(names: Sequence[str], *, is_removal: bool = False) -> int:
    """Pin workflows as the watch list has them, or let those go that it has no longer; without a name say what differs.

    Return 0, 1 if something differs or nothing can be kept, 2 if it was asked wrongly.
    """
    names = list(dict.fromkeys(names))
    try:
        lines = _approved(names, is_removal=is_removal) if names or is_removal else _differing()
    except UsageError as error:
        return _complain(f"{error}", 2)
    except WatchlistError as error:
        return _complain(f"the watch list is wrong: {error}", 2)
    except StoreError as error:
        return _complain(f"nothing is approved: {error}", 1)
    has_difference = bool(lines) and not names
    sys.stdout.write("".join(f"{line}\n" for line in lines or ["nothing differs from what is pinned"]))
    return int(has_difference)


def _written() -> Mapping[str, WorkflowSpec]:
    return read_workflows(watchlist_path(os.environ))


def _differing() -> Sequence[str]:
    written, pinned = _written(), _pinned()
    entries = [_entry(name, written.get(name)) for name in dict.fromkeys((*written, *pinned))]
    return [line for entry in entries for line in _difference(entry, pinned.get(entry.name))]


def _pinned() -> Mapping[str, Spec | None]:
    if not has_database(data_dir()):
        return {}
    with open_blocking(data_dir()) as store:
        pins = store.read(store.tables.pins.in_force())
    return {pin.name: spec_of(pin) for pin in pins if pin.kind is Kind.WORKFLOW}


def _difference(entry: Entry, was: Spec | None) -> Iterator[str]:
    if was == entry.spec:
        return
    differs = "differs" if entry.spec else "no longer in the watch list"
    yield f"{one_line(entry.name)}: {differs if was else 'not pinned yet'}"
    yield from _changes(entry, was)


def _approved(names: Sequence[str], *, is_removal: bool) -> Sequence[str]:
    if not names:
        raise UsageError("--remove: a NAME must follow")
    written = _written()
    if not has_database(data_dir()) and (strange := [name for name in names if name not in written]):
        raise UsageError(unknown("no workflow of that name", strange[0], written))
    entries = [_entry(name, written.get(name)) for name in names]
    with open_blocking(data_dir()) as store:
        lines = store.write(_pin_all(store.tables, entries, SystemClock().now(), is_removal=is_removal))
        _copy(store)
    return lines


def _copy(store: BlockingStore) -> None:
    pins = store.read(store.tables.pins.in_force())
    with suppress(OSError):  # without copies it is run as long as its files are as they were
        copies_in(data_dir()).hold([spec_of(pin) for pin in pins], alone=True)


def _entry(name: str, spec: WorkflowSpec | None) -> Entry:
    if spec is not None:
        check_schema(spec)
        spec = with_contents(spec)
    return Entry(kind=Kind.WORKFLOW, name=name, spec=spec)


async def _pin_all(
    tables: RunTables, entries: Sequence[Entry], now: float, *, is_removal: bool
) -> Sequence[str]:
    pins, proposals = await tables.pins.all(), await tables.proposals.newest()
    if await tables.presence.last() is not None or not is_first_look(pins, proposals):
        raise UsageError(
            "a bot has looked at this watch list: what it says is approved in the chat;"
            " without a chat, begin anew with another LOOPWARDEN_DATA_DIR"
        )
    lines: list[str] = []
    for entry in entries:
        before = await tables.pins.of(entry.kind, entry.name)
        _check_meant(entry, before, is_removal=is_removal)
        was = spec_of(before)
        lines += _shown(entry, was)
        if was != entry.spec:
            await tables.pins.add(pin_of(entry, How.APPROVED, now))
    return lines


def _check_meant(entry: Entry, before: Pin | None, *, is_removal: bool) -> None:
    name = one_line(entry.name)
    if before is None and entry.spec is None:
        raise UsageError(f"{name}: neither in the watch list nor pinned")
    if entry.spec is None and not is_removal:
        raise UsageError(f"{name} is no longer in the watch list: --remove takes it out of force")
    if entry.spec is not None and is_removal:
        raise UsageError(f"{name} is in the watch list: what is there is not removed")


def _shown(entry: Entry, was: Spec | None) -> Iterator[str]:
    name = one_line(entry.name)
    if was == entry.spec:
        yield f"{name}: nothing differs from what is pinned"
        return
    yield f"{name}: {'removed' if entry.spec is None else 'approved'}"
    yield from _changes(entry, was)


def _changes(entry: Entry, was: Spec | None) -> Iterator[str]:
    for change in difference(was, entry.spec, OnDetection.STOP):
        what = f"{one_line(change.field)}: "
        # What is new is neither stricter nor looser than anything.
        yield f"  {change.mark:<9}  {what}{_values(change)}" if was else f"  {what}{one_line(change.after)}"
    if entry.spec is not None:
        yield from (f"  not pinned: {one_line(words)}" for words in not_pinned(entry.spec))


def _values(change: Change) -> str:
    before, after = one_line(change.before), one_line(change.after)
    if before and after:
        return f"{before} -> {after}"
    return f"added {after}" if after else f"removed {before}"


def _complain(text: str, code: int) -> int:
    sys.stderr.write(f"loopwarden: {text}\n")
    return code

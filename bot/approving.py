"""`loopwarden approve`: where no bot has ever looked, what the watch list says of a workflow counts from now on."""

import os
import sys
from collections.abc import Iterator, Sequence

from bot.asked import WATCHLIST, UsageError, check_schema
from bot.clock import SystemClock
from bot.data_dir import data_dir
from jobs.contents import not_pinned, with_contents
from jobs.pinning.change import Change
from jobs.pinning.difference import difference
from jobs.pinning.kind import How, Kind
from jobs.pinning.pin import Entry, Spec, pin_of, spec_of
from jobs.store.blocking import RunTables, has_database, open_blocking
from jobs.store.schema import StoreError
from jobs.thrash.policy import OnDetection
from jobs.verification.spec import WorkflowSpec
from jobs.verification.wording import one_line
from jobs.watchlist.error import WatchlistError, unknown
from jobs.watchlist.workflows import read_workflows


def approve(names: Sequence[str]) -> int:
    """Pin workflows as the watch list has them; return 0, 1 if they cannot be kept, 2 if it was asked wrongly."""
    try:
        lines = _approved(list(dict.fromkeys(names)))
    except UsageError as error:
        return _complain(f"{error}", 2)
    except WatchlistError as error:
        return _complain(f"the watch list is wrong: {error}", 2)
    except StoreError as error:
        return _complain(f"nothing is approved: {error}", 1)
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0


def _approved(names: Sequence[str]) -> Sequence[str]:
    path = os.path.expanduser(os.environ.get("LOOPWARDEN_WATCHLIST") or WATCHLIST)  # noqa: PTH111 - as `verify`
    written = read_workflows(path)
    if not has_database(data_dir()) and (strange := [name for name in names if name not in written]):
        raise UsageError(unknown("no workflow of that name", strange[0], written))
    entries = [_entry(name, written.get(name)) for name in names]
    with open_blocking(data_dir()) as store:
        return store.write(_pin_all(store.tables, entries, SystemClock().now()))


def _entry(name: str, spec: WorkflowSpec | None) -> Entry:
    if spec is not None:
        check_schema(spec)
        spec = with_contents(spec)
    return Entry(kind=Kind.WORKFLOW, name=name, spec=spec)


async def _pin_all(tables: RunTables, entries: Sequence[Entry], now: float) -> Sequence[str]:
    if await tables.presence.last() is not None:
        raise UsageError("a bot has looked at this watch list: what it says is approved in the chat")
    lines: list[str] = []
    for entry in entries:
        before = await tables.pins.of(entry.kind, entry.name)
        if before is None and entry.spec is None:
            raise UsageError(f"{one_line(entry.name)}: neither in the watch list nor pinned")
        was = spec_of(before)
        lines += _shown(entry, was)
        if was != entry.spec:
            await tables.pins.add(pin_of(entry, How.APPROVED, now))
    return lines


def _shown(entry: Entry, was: Spec | None) -> Iterator[str]:
    name = one_line(entry.name)
    if was == entry.spec:
        yield f"{name}: nothing differs from what was approved"
        return
    yield f"{name}: {'removed' if entry.spec is None else 'approved'}"
    for change in difference(was, entry.spec, OnDetection.STOP):
        yield f"  {change.mark:<9}  {one_line(change.field)}: {_values(change)}"
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

"""What `loopwarden verify` judges by: what was pinned of a workflow, whatever the watch list says."""

from collections.abc import Callable
from contextlib import suppress

import msgspec

from bot.asked import Asked, UsageError, Words, by
from bot.data_dir import data_dir
from jobs.pinning.deciding import decide
from jobs.pinning.kind import How, Kind
from jobs.pinning.pin import Entry, Pin, pin_of, spec_of
from jobs.store.blocking import BlockingStore, RunTables
from jobs.verification.spec import WorkflowSpec
from jobs.verification.wording import one_line

Said = Asked | Exception
"""What the watch list means by the words, or why it means nothing."""


def enforced(
    store: BlockingStore, given: Words, said: Said, now: float, complain: Callable[[str], None]
) -> Asked:
    """Return what is to be verified by what was pinned; what nobody knew is pinned now.

    Raises:
        UsageError, WatchlistError: there is no pin, and `said` is one; or it needs approval.
    """
    tables, name = store.tables, given.name
    if (pin := store.read(tables.pins.of(Kind.WORKFLOW, name))) is not None:
        spec = _spec_of(pin)
        warn(store, said, spec, complain)
        return by(spec, given)
    if isinstance(said, Exception):
        raise said
    if not said.is_default:
        said = msgspec.structs.replace(said, spec=_with_contents(said.spec))
        _check_known_by_nobody(store, said.spec, now)
        store.write(_pin(tables, said.spec, now))
        _copy(said.spec)
        complain(f"{one_line(name)} is pinned as the watch list has it; a change counts once it is approved")
    return said


def _with_contents(spec: WorkflowSpec) -> WorkflowSpec:
    """Return a specification with digests of what it refers to."""
    if not _refers(spec):
        return spec
    from jobs.contents import with_contents as filled_in  # noqa: PLC0415 - most refer to nothing

    return filled_in(spec)


def _not_pinned(spec: WorkflowSpec) -> tuple[str, ...]:
    """Say what it refers to that no pin holds still."""
    if not _refers(spec):
        return ()
    from jobs.contents import not_pinned as loose_in  # noqa: PLC0415 - as above

    return loose_in(spec)


def _copy(spec: WorkflowSpec) -> None:
    """Keep copies of the files of a command that was pinned, as the bot does."""
    if spec.command is None:
        return
    from jobs.approved_copies import copies_in  # noqa: PLC0415 - as above

    with suppress(OSError):  # without them it is run as long as its files are as they were
        copies_in(data_dir()).add([spec])


def _refers(spec: WorkflowSpec) -> bool:
    return spec.command is not None or spec.schema is not None


def _spec_of(pin: Pin) -> WorkflowSpec:
    spec = spec_of(pin)
    assert isinstance(spec, WorkflowSpec)  # noqa: S101 - for mypy: its kind is asked for
    return spec


def warn(store: BlockingStore, said: Said, pinned: WorkflowSpec, complain: Callable[[str], None]) -> None:
    """Say it if the watch list does not say what was pinned."""
    if (warning := _warning(store, said, pinned)) is not None:
        complain(f"warning: {warning}")


def _warning(store: BlockingStore, said: Said, pinned: WorkflowSpec) -> str | None:
    counts = f"what was pinned of {one_line(pinned.name)} counts"
    if isinstance(said, Exception):
        why = f"{said}".partition("\n")[0]
        return f"{one_line(why)}; {counts}"
    if said.is_default:
        return f"there is no watch list; {counts}"
    if _with_contents(said.spec) == pinned:
        return None
    return f"the watch list differs; {counts} until the change is approved: {_way_on(store, pinned.name)}"


def _way_on(store: BlockingStore, name: str) -> str:
    """Say where a person can approve what the watch list says."""
    has_bot = store.read(store.tables.presence.last()) is not None
    return "see the chat" if has_bot else f"`loopwarden approve {one_line(name)}`"


def _check_known_by_nobody(store: BlockingStore, spec: WorkflowSpec, now: float) -> None:
    pins, proposals = store.read(store.tables.pins.all()), store.read(store.tables.proposals.newest())
    decision = decide([_entry(spec)], pins, proposals, now)
    if (Kind.WORKFLOW, spec.name) in {(pin.kind, pin.name) for pin in decision.altered}:
        way_on = _way_on(store, spec.name)
        raise UsageError(f"the pin of {one_line(spec.name)} was altered in the database: {way_on}")
    if not decision.first_use:
        raise UsageError(f"{one_line(spec.name)} is not approved yet: see the chat")


async def _pin(tables: RunTables, spec: WorkflowSpec, now: float) -> None:
    from jobs.alert.pin_notice import Pinned, first_use_told  # noqa: PLC0415 - once for each workflow

    if await tables.pins.of(Kind.WORKFLOW, spec.name):
        return  # another run was quicker
    await tables.pins.add(pin_of(_entry(spec), How.FIRST_VERIFY, now))
    pinned = Pinned(kind=Kind.WORKFLOW, name=spec.name, not_pinned=_not_pinned(spec))
    for told in first_use_told([pinned], How.FIRST_VERIFY):
        await tables.outbox.put(told, now)


def _entry(spec: WorkflowSpec) -> Entry:
    return Entry(kind=Kind.WORKFLOW, name=spec.name, spec=spec)

"""Which entries lean on a killer: it is approved by itself, and what names it stops nothing without it."""

from collections.abc import Iterable, Mapping

from jobs.pinning.kind import Kind
from jobs.pinning.pin import Entry, Spec
from jobs.verification.spec import WorkflowSpec
from jobs.watchlist.killers import DryRunSpec, KillerSpec
from jobs.watchlist.sources import SourceSpec

Killers = Mapping[str, KillerSpec]
"""Those in force."""


def killers_in(entries: Iterable[Entry]) -> Killers:
    """Return the killers among some entries."""
    return {entry.name: entry.spec for entry in entries if isinstance(entry.spec, KillerSpec)}


def killer_named(spec: Spec | None) -> str | None:
    """Return the killer that a source has used, or that follows another one."""
    match spec:
        case None | WorkflowSpec():
            return None
        case SourceSpec():
            return spec.killer
        case _:
            return spec.then


def does_stop(name: str | None, killers: Killers | None) -> bool:
    """Whether there is such a killer, and it is no rehearsal; without `killers` each one named is taken for such."""
    if killers is None:
        return name is not None
    return not isinstance(killers.get(name or ""), DryRunSpec | None)


def missing_killer(spec: Spec | None, killers: Killers) -> str | None:
    """Return the killer that it names and that is not in force."""
    name = killer_named(spec)
    return None if name in killers else name


def users_of(killer: str, entries: Iterable[Entry]) -> tuple[tuple[Kind, str], ...]:
    """Return which entries name a killer."""
    return tuple((entry.kind, entry.name) for entry in entries if killer_named(entry.spec) == killer)

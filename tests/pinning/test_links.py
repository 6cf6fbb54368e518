"""What names a killer is worth what is in force under that name."""

from typing import Final

import pytest

from jobs.pinning.kind import Kind
from jobs.pinning.links import does_stop, killer_named, killers_in, missing_killer, users_of
from jobs.pinning.pin import Entry, Spec
from jobs.verification.spec import WorkflowSpec
from jobs.watchlist.killers import CommandSpec, DryRunSpec, ProcessSpec
from jobs.watchlist.sources import SourceSpec

SOURCE: Final = SourceSpec(name="main", path="/log", killer="cli")
CLI: Final = CommandSpec(argv=("/bin/stop",), then="hard")
ENTRIES: Final = (
    Entry(kind=Kind.SOURCE, name="main", spec=SOURCE),
    Entry(kind=Kind.KILLER, name="cli", spec=CLI),
    Entry(kind=Kind.KILLER, name="rehearsal", spec=DryRunSpec()),
    Entry(kind=Kind.WORKFLOW, name="cli", spec=WorkflowSpec(name="cli")),
)
KILLERS: Final = killers_in(ENTRIES)


def test_killers_are_known_by_their_names() -> None:
    """Other entries may have the same."""
    assert dict(KILLERS) == {"cli": CLI, "rehearsal": DryRunSpec()}


@pytest.mark.parametrize(
    ("spec", "named", "missing"),
    [
        (SOURCE, "cli", None),
        (CLI, "hard", "hard"),
        (ProcessSpec(match="agent"), None, None),
        (DryRunSpec(), None, None),
        (WorkflowSpec(), None, None),
        (None, None, None),
    ],
)
def test_sources_name_one_and_killers_the_one_that_follows(
    spec: Spec | None, named: str | None, missing: str | None
) -> None:
    assert (killer_named(spec), missing_killer(spec, KILLERS)) == (named, missing)


@pytest.mark.parametrize(
    ("name", "expected", "unknown"),
    [("cli", True, True), ("rehearsal", False, True), ("hard", False, True), (None, False, False)],
)
def test_only_a_killer_in_force_that_is_no_rehearsal_stops(
    name: str | None, *, expected: bool, unknown: bool
) -> None:
    """Where it is not known what is in force, each that is named is taken for one that does."""
    assert (does_stop(name, KILLERS), does_stop(name, None)) == (expected, unknown)


def test_the_users_of_a_killer_are_told_by_kind_and_name() -> None:
    assert users_of("cli", ENTRIES) == ((Kind.SOURCE, "main"),)
    assert users_of("hard", ENTRIES) == ((Kind.KILLER, "cli"),)
    assert users_of("rehearsal", ENTRIES) == ()

"""What a pin has changed is told by comparing it with the one before."""

from dataclasses import replace

import pytest

from jobs.pinning.audit import audited
from jobs.pinning.change import Change, Mark
from jobs.pinning.kind import How, Kind
from jobs.pinning.pin import Pin, Spec, encoded, hash_of
from jobs.thrash.policy import OnDetection
from jobs.verification.spec import WorkflowSpec
from jobs.watchlist.sources import SourceSpec

STOP = OnDetection.STOP
STRICT = WorkflowSpec(name="nightly", output="/w/a.json", max_age=1800)
LOOSE = WorkflowSpec(name="nightly", output="/w/a.json", max_age=86_400)
ALTERED = '{"max_age": 1e9}'


def pin(spec: Spec | None, kind: Kind = Kind.WORKFLOW) -> Pin:
    text = encoded(spec)
    return Pin(kind=kind, name="nightly", entry=text, hash=hash_of(text), how=How.APPROVED, at=0)


def test_a_pin_is_compared_with_the_one_before() -> None:
    found = audited(pin(LOOSE), pin(STRICT), STOP)
    assert found.changes == (Change(field="max_age", before="30 min", after="1 d", mark=Mark.LOOSER),)
    assert not found.is_altered


@pytest.mark.parametrize(
    ("before", "after"),
    [(None, pin(STRICT)), (pin(STRICT), pin(None)), (pin(None), pin(STRICT)), (pin(STRICT), pin(STRICT))],
    ids=["new", "removed", "back", "alike"],
)
def test_where_there_are_no_two_versions_nothing_has_changed(before: Pin | None, after: Pin) -> None:
    assert audited(after, before, STOP).changes == ()


def test_what_a_source_does_that_does_not_say_is_the_default() -> None:
    silent = SourceSpec(name="gateway", path="/w/calls.jsonl", killer="stopper")
    asking = SourceSpec(name="gateway", path="/w/calls.jsonl", killer="stopper", on_detection=OnDetection.ASK)
    [change] = audited(pin(asking, Kind.SOURCE), pin(silent, Kind.SOURCE), STOP).changes
    assert change.mark is Mark.LOOSER
    [change] = audited(pin(asking, Kind.SOURCE), pin(silent, Kind.SOURCE), OnDetection.OBSERVE).changes
    assert change.mark is Mark.STRICTER


@pytest.mark.parametrize("entry", [ALTERED, "{", '{"of": "another release"}'])
def test_a_pin_that_is_not_what_was_approved_is_marked(entry: str) -> None:
    """Whether it can be read or not."""
    altered = replace(pin(STRICT), entry=entry)
    assert audited(altered, pin(STRICT), STOP).is_altered
    assert not audited(pin(STRICT), altered, STOP).is_altered

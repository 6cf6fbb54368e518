"""What is told of pins, and in which message."""

import msgspec
import pytest

from jobs.alert.notice import AnyNotice
from jobs.alert.outgoing import NOTICE, Mode
from jobs.alert.pin_notice import (
    MOST_IN_ONE,
    AlteredNotice,
    FirstUseNotice,
    Pinned,
    ProposalNotice,
    altered_told,
    first_use_told,
    proposal_told,
)
from jobs.pinning.change import Change, Mark
from jobs.pinning.kind import How, Kind, ProposalState

CHANGE = Change(field="max_age", before="30 min", after="1 d", mark=Mark.LOOSER)
OPEN = ProposalNotice(
    proposal=7, kind=Kind.WORKFLOW, name="nightly", changes=(CHANGE,), not_pinned=("sh",), in_force_since=1.0
)
_decoder: msgspec.json.Decoder[AnyNotice] = msgspec.json.Decoder(AnyNotice)


@pytest.mark.parametrize(
    ("state", "is_replacing", "mode"),
    [
        (ProposalState.OPEN, False, Mode.SEND),
        (ProposalState.OPEN, True, Mode.EDIT),
        (ProposalState.APPROVED, False, Mode.EDIT),
        (ProposalState.REJECTED, False, Mode.EDIT),
        (ProposalState.WITHDRAWN, False, Mode.EDIT),
    ],
)
def test_a_proposal_is_a_message_that_is_edited_until_it_is_over(
    state: ProposalState, is_replacing: bool, mode: Mode
) -> None:
    notice = msgspec.structs.replace(OPEN, state=state)
    told = proposal_told(notice, is_replacing=is_replacing)
    assert (told.kind, told.mode, told.subject) == (NOTICE, mode, "pin:workflow:nightly")
    assert _decoder.decode(told.body) == notice


def test_what_was_pinned_at_first_sight_is_told_in_one_message() -> None:
    entries = (Pinned(kind=Kind.KILLER, name="stopper", not_pinned=("sh",)),)
    [told] = first_use_told(entries, How.FIRST_VERIFY)
    assert (told.kind, told.mode, told.subject) == (NOTICE, Mode.SEND, None)
    assert _decoder.decode(told.body) == FirstUseNotice(entries=entries, how=How.FIRST_VERIFY)


def test_so_many_that_not_every_name_fits_are_told_in_several() -> None:
    """Workflows first: they are the bar."""
    workflows = [Pinned(kind=Kind.WORKFLOW, name=f"w{number}") for number in range(MOST_IN_ONE)]
    source = Pinned(kind=Kind.SOURCE, name="gateway")
    told = [_decoder.decode(each.body) for each in first_use_told([source, *workflows])]
    assert told == [FirstUseNotice(entries=tuple(workflows)), FirstUseNotice(entries=(source,))]


def test_a_pin_that_was_altered_is_told() -> None:
    told = altered_told(Kind.SOURCE, "gateway")
    assert (told.kind, told.mode, told.alarm) == (NOTICE, Mode.SEND, True)
    assert _decoder.decode(told.body) == AlteredNotice(kind=Kind.SOURCE, name="gateway")

"""Values of pins with foreign text in them, to be drawn by Hypothesis."""

from hypothesis import strategies as st

from bot.views.differing import Differing
from jobs.alert.pin_notice import AlteredNotice, FirstUseNotice, Pinned, ProposalNotice
from jobs.pinning.audit import Audited
from jobs.pinning.change import Change, Mark
from jobs.pinning.kind import How, Kind, ProposalState
from jobs.pinning.pin import Pin, Proposal
from tests.bot.safety import foreign, ids, moments

kinds = st.sampled_from(Kind)
words = st.lists(foreign, max_size=4).map(tuple)
marks = st.sampled_from(Mark)
changes = st.builds(
    Change, field=foreign, before=st.just("") | foreign, after=st.just("") | foreign, mark=marks
)
first_use_notices = st.builds(
    FirstUseNotice,
    entries=st.lists(st.builds(Pinned, kind=kinds, name=foreign, not_pinned=words), max_size=40).map(tuple),
    how=st.sampled_from([How.FIRST_USE, How.FIRST_VERIFY]),
)
proposal_notices = st.builds(
    ProposalNotice,
    proposal=ids,
    kind=kinds,
    name=foreign,
    is_new=st.booleans(),
    is_gone=st.booleans(),
    changes=st.lists(changes, max_size=30).map(tuple),
    not_pinned=words,
    in_force_since=st.none() | moments,
    state=st.sampled_from(ProposalState),
    decided_by=st.none() | ids,
)
altered_notices = st.builds(AlteredNotice, kind=kinds, name=foreign)
pins = st.builds(
    Pin,
    id=ids,
    kind=kinds,
    name=foreign,
    entry=st.sampled_from([None, "{}"]),
    hash=foreign,
    how=st.sampled_from(How),
    by=st.none() | ids,
    at=moments,
)
audits = st.builds(
    Audited, pin=pins, before=st.none() | pins, changes=st.lists(changes, max_size=9).map(tuple)
)
differing = st.builds(
    Differing,
    proposal=st.builds(
        Proposal,
        id=ids,
        kind=kinds,
        name=foreign,
        entry=st.sampled_from([None, "{}"]),
        hash=foreign,
        state=st.sampled_from([ProposalState.OPEN, ProposalState.REJECTED]),
        found_at=moments,
    ),
    is_new=st.booleans(),
)

"""Values of pins with foreign text in them, to be drawn by Hypothesis."""

from hypothesis import strategies as st

from bot.views.differing import Differing
from jobs.alert.pin_notice import (
    MOST_IN_ONE,
    AlteredNotice,
    FirstUseNotice,
    LetGoNotice,
    Pinned,
    ProposalNotice,
    ProposalsNotice,
)
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
pinned_entries = st.lists(
    st.builds(Pinned, kind=kinds, name=foreign, not_pinned=words), max_size=MOST_IN_ONE
).map(tuple)
first_use_notices = st.builds(
    FirstUseNotice,
    entries=pinned_entries,
    how=st.sampled_from([How.FIRST_USE, How.FIRST_VERIFY]),
    is_lost=st.booleans(),
)
let_go_notices = st.builds(LetGoNotice, entries=pinned_entries)
proposal_notices = st.builds(
    ProposalNotice,
    proposal=ids,
    kind=kinds,
    name=foreign,
    is_new=st.booleans(),
    is_gone=st.booleans(),
    changes=st.lists(changes, max_size=30).map(tuple),
    has_more=st.booleans(),
    not_pinned=words,
    missing_killer=st.none() | foreign,
    used_by=st.lists(st.tuples(kinds, foreign), max_size=4).map(tuple),
    in_force_since=st.none() | moments,
    state=st.sampled_from(ProposalState),
    decided_by=st.none() | ids,
)
proposals_notices = st.builds(
    ProposalsNotice,
    count=st.integers(MOST_IN_ONE, 10_000),
    entries=st.lists(st.tuples(kinds, foreign), min_size=1, max_size=MOST_IN_ONE).map(tuple),
)
altered_notices = st.builds(
    AlteredNotice, kind=kinds, name=foreign, others=st.integers(0, 9_999), is_put_back=st.booleans()
)
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

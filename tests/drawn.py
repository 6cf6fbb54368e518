"""Values of every kind that the database keeps, to be drawn by Hypothesis."""

from hypothesis import strategies as st

from jobs.alert.outgoing import Mode, Outgoing
from jobs.ports import Confirmation, Cursor, Outcome, Stop, StopState, Target
from jobs.thrash.incident import Incident, IncidentStatus
from jobs.thrash.locality import LocalityState, SeenCall
from jobs.thrash.price import MOST
from jobs.thrash.session import Session
from jobs.thrash.streak import Ended, Streak

names = st.text(max_size=12)
numbers = st.integers(0, 2**53)
pids = st.integers(1, 2**31 - 1) | st.none()
times = st.floats(0, 1e11)

cursors = st.builds(
    Cursor,
    device=numbers,
    inode=numbers,
    offset=numbers,
    head=names,
    tail=names,
    unreadable=numbers,
    read_at=times,
)

seen_calls = st.builds(
    SeenCall,
    number=numbers,
    ts=times,
    tool=names,
    identity=names,
    tokens_before=numbers | st.none(),
    cost_before=numbers | st.none(),
)
memories = st.builds(
    LocalityState,
    calls=numbers,
    tokens=numbers | st.none(),
    recent=st.lists(seen_calls, max_size=3).map(tuple),
    cost=numbers | st.none(),
)
streaks = st.builds(Streak, steps=numbers, newest_repeat=numbers, at=times, pid=pids)
sessions = st.builds(
    Session,
    id=st.just(0),
    source=names,
    session=names,
    agent=names,
    parent=names | st.none(),
    pid=pids,
    pid_since_ts=times | st.none(),
    first_ts=times,
    last_ts=times,
    seen_at=times,
    errors=numbers,
    memory=memories,
    streak=streaks,
    currency=names | st.none(),
)

incidents = st.builds(
    Incident,
    id=st.just(0),
    session_id=numbers,
    agent=names,
    source=names,
    opened_at=times,
    updated_at=times,
    first_call=numbers,
    first_ts=times,
    tokens_before=numbers | st.none(),
    kind=names,
    tool=names,
    score=numbers,
    steps=numbers,
    calls=numbers,
    newest_ts=times,
    tokens=numbers | st.none(),
    status=st.sampled_from(IncidentStatus),
    ended=st.sampled_from(Ended) | st.none(),
    asked_at=times | st.none(),
    snoozed_until=times | st.none(),
    closed_at=times | st.none(),
    cost_before=st.integers(0, MOST) | st.none(),
    cost=st.integers(0, MOST) | st.none(),
    currency=names | st.none(),
)

targets = st.builds(
    Target,
    source=names,
    session=names,
    agent=names,
    reason=names,
    score=numbers,
    pid=pids,
    pid_since_ts=times | st.none(),
    last_ts=times,
)
stops = st.builds(
    Stop,
    id=st.just(0),
    session_id=numbers,
    incident_id=st.none(),
    target=targets,
    ordered_by=numbers | st.none(),
    ordered_at=times,
    escalates=st.none(),
    state=st.sampled_from(StopState),
    outcome=st.sampled_from(Outcome) | st.none(),
    detail=names,
    finished_at=times | st.none(),
)

confirmations = st.builds(
    Confirmation,
    nonce=st.uuids().map(str),
    session_id=numbers,
    pid=pids,
    user_id=numbers,
    chat_id=st.integers(-(2**53), 2**53),
    outgoing_id=numbers,
    expires_at=times,
    used_at=times | st.none(),
)

outgoings = st.builds(
    Outgoing,
    kind=names,
    body=names.map(str.encode),
    mode=st.sampled_from(Mode),
    subject=names | st.none(),
    target_message=numbers | st.none(),
    chat=names | st.none(),
    silent=st.booleans(),
)

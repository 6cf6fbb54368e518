"""A replay: what the scan would have done at the time, and what that would have saved."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, count

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.ports import Batch, CallSource, Cursor, Watched
from jobs.replay.event import Event, EventKind, Saved
from jobs.replay.reading import read_all
from jobs.replay.replay import Replay
from jobs.store.database import Database
from jobs.thrash.call import ToolCall, Usage
from jobs.thrash.policy import OnDetection, ThrashPolicy
from jobs.thrash.price import Price, Prices
from tests.fakes import NOON, CallLog, FixedWatch, HandClock, ScriptedKiller, call
from tests.jobs.world import World

POLICY = ThrashPolicy()
YEAR = 365 * 86_400.0


PRICES = Prices(models={"cheap": Price(input=1, output=1)})


def batch_of(
    calls: Sequence[ToolCall], usages: Sequence[Usage] = (), path: str = "log", size: int = 0
) -> Batch:
    cursor = Cursor(device=1, inode=1, offset=0, head="", tail="")
    return Batch(path=path, cursor=cursor, calls=calls, usages=usages, size=size)


def replayed(
    calls: Sequence[ToolCall], policy: ThrashPolicy = POLICY, *, per_batch: int = 1000
) -> list[Event]:
    play = Replay(source="gateway", policy=policy)
    events = []
    for start in range(0, len(calls), per_batch):
        events += play.hear(batch_of(calls[start : start + per_batch]))
    return [*events, *play.end()]


def circles(calls: int, *, every: float = 5, start: float = NOON, session: str = "s-1") -> list[ToolCall]:
    """Calls that repeat each other."""
    return [call(start + n * every, session=session, tokens=7) for n in range(calls)]


def usage(
    ts: float, tokens: int, *, session: str = "s-1", has_call: bool = False, model: str | None = None
) -> Usage:
    return Usage(session=session, ts=ts, model=model, input=tokens, output=0, cached=0, has_call=has_call)


def kinds(events: Sequence[Event]) -> list[EventKind]:
    return [event.event for event in events]


# ── one loop ──────────────────────────────────────────────────────────────────────────────────────


def test_a_loop_is_alerted_at_the_first_detection_and_stopped_at_the_third() -> None:
    """Beats begin at the first call; a look sees what has come up to its beat."""
    alert, kill = replayed(circles(100))
    assert (alert.event, alert.ts, alert.call) == (EventKind.ALERT, NOON + 60, 12)
    assert (kill.event, kill.ts, kill.call) == (EventKind.KILL, NOON + 180, 36)
    assert (kill.session, kill.agent, kill.tool) == ("s-1", "coder", "exec")
    assert (kill.kind, kill.score, kill.reason) == ("thrash_loop", 10, "thrash_loop:10")


def test_what_a_session_does_after_its_stop_is_what_that_would_have_saved() -> None:
    alert, kill = replayed(circles(100))
    assert alert.saved is None
    assert kill.saved == Saved(calls=63, seconds=99 * 5 - 180, tokens=63 * 7)


def test_a_stop_that_comes_too_late_saves_nothing() -> None:
    _, kill = replayed(circles(37))
    assert kill.saved == Saved(calls=0, seconds=0, tokens=None)


def test_a_session_is_stopped_once() -> None:
    """Whatever follows, be it hours later, has not happened."""
    assert kinds(replayed([*circles(100), *circles(100, start=NOON + 7200)])) == [
        EventKind.ALERT,
        EventKind.KILL,
    ]


def test_what_is_only_observed_is_never_stopped() -> None:
    policy = replace(POLICY, on_detection=OnDetection.OBSERVE)
    assert kinds(replayed(circles(100), policy)) == [EventKind.ALERT]


def test_a_policy_that_stops_at_once_alerts_all_the_same() -> None:
    events = replayed(circles(100), replace(POLICY, kill_after=1))
    assert [(event.event, event.ts) for event in events] == [
        (EventKind.ALERT, NOON + 60),
        (EventKind.KILL, NOON + 60),
    ]


def test_a_loop_that_comes_back_is_alerted_again() -> None:
    """An incident that has ended is over; the next one is another alert."""
    once = circles(24)
    calm = [call(NOON + 130 + n, f"{n}" * 40) for n in range(12)]
    assert kinds(replayed([*once, *calm, *circles(12, start=NOON + 260)])) == [EventKind.ALERT] * 2


def test_sessions_in_one_log_do_not_touch_each_other() -> None:
    """Calls are counted over the file, and each session is judged by its own."""
    mixed = [each for pair in zip(circles(100), circles(100, session="s-2"), strict=True) for each in pair]
    events = replayed(mixed)
    assert [event.session for event in events] == ["s-1", "s-2", "s-1", "s-2"]
    assert [event.call for event in events] == [24, 25, 72, 73]


def test_nothing_is_told_of_work_that_gets_on() -> None:
    assert replayed([call(NOON + n, f"{n}" * 40) for n in range(1, 200)]) == []


def test_nothing_read_is_nothing_told() -> None:
    play = Replay(source="gateway", policy=POLICY)
    assert play.hear(batch_of([])) == []
    assert list(play.end()) == []
    assert (play.calls, play.sessions) == (0, 0)


# ── as the scan would have ────────────────────────────────────────────────────────────────────────

numbers = count()
gaps = st.sampled_from([0, 1, 2, 5, 5, 5, 10, 20, 59, 60, 61, 200, 700])
some_calls = st.lists(
    st.tuples(
        gaps,
        st.sampled_from(["one", "one", "one", "other"]),
        st.sampled_from(["pytest -x", "pytest -x", "pytest -x", "git status --short"]),
        st.sampled_from([None, 11, 11, 11, 12]),
    ),
    max_size=120,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=some_calls, kill_after=st.integers(1, 3), per_batch=st.integers(1, 50))
async def test_it_tells_what_the_scan_would_have_done_at_the_time(
    store: Database, drawn: list[tuple[int, str, str, int | None]], kill_after: int, per_batch: int
) -> None:
    """The scan, looking at the log at each beat as it was then, alerts and stops at the same beats for the same reasons."""
    times = [NOON + passed for passed in accumulate(gap for gap, *_ in drawn)]
    calls = [
        call(ts, command, session=session, pid=pid, tokens=1)
        for ts, (_, session, command, pid) in zip(times, drawn, strict=True)
    ]
    policy = replace(POLICY, kill_after=kill_after)
    told = replayed(calls, policy, per_batch=per_batch)
    assert await _scanned(store, calls, policy) == sorted(
        (event.session, event.event, event.ts, event.reason if event.event is EventKind.KILL else "")
        for event in told
    )


async def _scanned(
    store: Database, calls: Sequence[ToolCall], policy: ThrashPolicy
) -> list[tuple[str, EventKind, float, str]]:
    """Let the scan look at each beat and return its alerts and stops."""
    log, watch, clock = CallLog(name=f"log {next(numbers)}"), FixedWatch(), HandClock()
    watch.watched = [Watched(source=log, killer=ScriptedKiller(), on_detection=policy.on_detection)]
    world = World(store=store, policy=policy, clock=clock, log=log, watch=watch)
    clock.time = calls[0].ts if calls else NOON
    while len(log.calls) < len(calls):
        log.calls += [each for each in calls[len(log.calls) :] if each.ts <= clock.now()]
        await world.look()
    found = []
    for incident in await world.incidents():
        if incident.source == log.name:
            session = await store.reading.sessions.get(incident.session_id)
            assert session is not None
            found.append((session.session, EventKind.ALERT, incident.opened_at, ""))
            found += [
                (session.session, EventKind.KILL, stop.ordered_at, stop.target.reason)
                for stop in await store.reading.stops.of_session(session.id, 1)
                if stop.incident_id == incident.id
            ]
    return sorted(found)


@settings(max_examples=50)
@given(drawn=some_calls, per_batch=st.integers(1, 50), held=st.integers(1, 40))
def test_how_much_is_held_at_a_time_changes_nothing(
    drawn: list[tuple[int, str, str, int | None]], per_batch: int, held: int
) -> None:
    """What waits for its look may go into the states before: it is seen at that look all the same."""
    times = [NOON + passed for passed in accumulate(gap for gap, *_ in drawn)]
    calls = [
        call(ts, command, session=session, pid=pid, tokens=1)
        for ts, (_, session, command, pid) in zip(times, drawn, strict=True)
    ]
    small = Replay(source="gateway", policy=POLICY, calls_held=held)
    events = []
    for start in range(0, len(calls), per_batch):
        events += small.hear(batch_of(calls[start : start + per_batch]))
    in_order = sorted([*events, *small.end()], key=str)
    assert in_order == sorted(replayed(calls), key=str)


# ── the log's clock ───────────────────────────────────────────────────────────────────────────────

hostile_times = st.one_of(
    st.sampled_from([0.0, 1e-9, NOON, NOON + 60, NOON + 60 + 1e-7, 253_402_300_799.0]),
    st.floats(0, 253_402_300_799),
)


@given(times=st.lists(hostile_times, max_size=60), every=st.sampled_from([1.0, 1 / 3, 60.0, 300.0]))
def test_no_time_is_too_hostile(times: list[float], every: float) -> None:
    """Times in any order and of any century are replayed, one look a call at most."""
    events = replayed([call(ts) for ts in times], replace(POLICY, every=every))
    assert len([event for event in events if event.event is EventKind.KILL]) <= 1
    assert len(events) <= len(times) + 1


def test_hours_without_a_call_cost_nothing() -> None:
    """Two centuries of beats in which nothing happened are one step."""
    later = circles(100, start=NOON + 200 * YEAR)
    assert kinds(replayed([*circles(7), *later], replace(POLICY, every=1))) == [EventKind.ALERT] * 2 + [
        EventKind.KILL
    ]


def test_lines_a_little_out_of_order_are_seen_together() -> None:
    """A line is written after those before it, whatever its time says: times that take turns are no looks of their own."""
    calls = [call(NOON + 60 + (1 if n % 2 else -1)) for n in range(40)]
    assert kinds(replayed(calls)) == [EventKind.ALERT]


def test_one_time_from_the_far_future_hides_nothing() -> None:
    calls = [*circles(3), call(NOON + 20 * YEAR), *circles(97, start=NOON + 15)]
    assert kinds(replayed(calls)) == [EventKind.ALERT, EventKind.KILL]


def test_an_older_file_that_comes_later_is_judged_by_its_own_time() -> None:
    """Files whose order was lost are replayed all the same."""
    old = circles(100, start=NOON - YEAR)
    play = Replay(source="gateway", policy=POLICY)
    events = [*play.hear(batch_of([call(NOON, "ls")], path="new")), *play.hear(batch_of(old, path="old"))]
    kill = [*events, *play.end()][-1]
    assert (kill.event, kill.path) == (EventKind.KILL, "old")
    assert NOON - YEAR < kill.ts < NOON - YEAR + 300


# ── tokens, files, sources ────────────────────────────────────────────────────────────────────────


def test_tokens_told_beside_the_calls_count_on_the_side_of_the_stop_where_they_fall() -> None:
    """Those that are told with a call, too, count once."""
    beside = [usage(NOON + n * 5, 100) for n in range(100)]
    beside += [usage(NOON + 400, 1, has_call=True), usage(NOON + 400, 1, session="unheard of")]
    play = Replay(source="claude-code", policy=POLICY)
    calls = [without_tokens(each) for each in circles(100)]
    play.hear(batch_of(calls, beside))
    kill = list(play.end())[-1]
    assert kill.saved == Saved(calls=63, seconds=315, tokens=6300)
    assert play.sessions == 1


def priced(usages: Sequence[Usage]) -> Saved | None:
    """What the stop of a loop would have saved, of which these are told beside the calls."""
    play = Replay(source="claude-code", policy=POLICY, prices=PRICES)
    play.hear(batch_of(circles(100), usages))
    return list(play.end())[-1].saved


def test_money_is_that_of_all_that_was_used_after_the_stop() -> None:
    """Also of tokens that are told with a call, which are counted there."""
    used = [usage(NOON + n * 5, 1000, has_call=n % 2 == 0, model="cheap") for n in range(100)]
    saved = priced(used)
    assert saved is not None
    assert (saved.cost, saved.currency, saved.unpriced) == (0.063, "USD", 0)


def test_tokens_without_a_price_are_told_beside_the_money() -> None:
    """Where none has a price there is no money that they could be missing in."""
    dear = [usage(NOON + n * 5, 1000, model="dear") for n in range(100)]
    saved = priced([*dear[:99], usage(NOON + 495, 1000, model="cheap")])
    assert saved is not None
    assert (saved.cost, saved.unpriced) == (0.001, 62_000)
    unknown = priced(dear)
    assert unknown is not None
    assert (unknown.cost, unknown.currency, unknown.unpriced) == (None, None, 0)


def test_in_a_database_the_calls_of_each_session_are_counted_by_themselves() -> None:
    """Its sessions are logs of their own that happen to lie in one file."""
    mixed = [each for pair in zip(circles(100), circles(100, session="s-2"), strict=True) for each in pair]
    play = Replay(source="opencode", policy=POLICY)
    events = [
        event
        for start in range(0, 200, 30)
        for event in play.hear(batch_of(mixed[start : start + 30]), is_database=True)
    ]
    events += play.end()
    assert [(event.session, event.call) for event in events] == [
        ("s-1", 12),
        ("s-2", 12),
        ("s-1", 36),
        ("s-2", 36),
    ]


def without_tokens(each: ToolCall) -> ToolCall:
    return call(each.ts, session=each.session, tokens=None)


def test_a_session_goes_on_from_one_file_to_the_next() -> None:
    """The event names the file that its newest call is in, and counts within that."""
    calls = circles(100)
    play = Replay(source="gateway", policy=POLICY)
    events = [*play.hear(batch_of(calls[:20], path="log.1")), *play.hear(batch_of(calls[20:], path="log"))]
    alert, kill = [*events, *play.end()]
    assert (alert.path, alert.call) == ("log.1", 12)
    assert (kill.path, kill.call) == ("log", 16)
    assert (play.calls, play.sessions) == (100, 1)


@dataclass(slots=True, kw_only=True)
class Slow(CallSource):
    """Reads a call a look, of so many; then it cannot go on, if it is stuck."""

    name: str = "slow"
    calls: int
    stuck_at: int = 1000
    looks: list[int] = field(default_factory=list)

    def read_new(self, cursors: Mapping[str, Cursor], now: float) -> Iterator[Batch]:
        place = cursors["log"].offset if cursors else 0
        self.looks.append(place)
        place, before = min(place + 1, self.stuck_at), place
        cursor = Cursor(
            device=1, inode=1, offset=place, head="", tail="", is_behind=place < self.calls, read_at=now
        )
        yield Batch(path="log", cursor=cursor, calls=(), size=place - before)

    def problems(self) -> Sequence[str]:
        return ()


def test_a_log_that_takes_several_looks_is_read_to_its_end() -> None:
    slow = Slow(calls=5)
    assert len(list(read_all(slow, NOON))) == 5
    assert slow.looks == [0, 1, 2, 3, 4]


def test_a_log_that_cannot_be_read_on_ends_the_reading() -> None:
    """It is not asked for ever."""
    slow = Slow(calls=5, stuck_at=2)
    list(read_all(slow, NOON))
    assert slow.looks == [0, 1, 2]

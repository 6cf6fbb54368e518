"""The scan: what it finds in a log becomes a step, an incident, an intent and a message, once."""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jobs.alert.notice import AskNotice, IncidentNotice
from jobs.alert.outgoing import Mode
from jobs.ports import Batch, Cursor, Outcome, StopState, Watched
from jobs.store.database import Database, open_database
from jobs.thrash.call import ToolCall
from jobs.thrash.incident import Incident, IncidentStatus
from jobs.thrash.policy import OnDetection, ThrashPolicy
from jobs.thrash.streak import Ended
from tests.fakes import NOON, CallLog, FixedWatch, ScriptedKiller, call, exited
from tests.jobs.world import BEAT, Heard, World

HOUR = 3600.0


def incident_in(heard: Heard) -> Incident:
    assert isinstance(heard.notice, IncidentNotice)
    return heard.notice.incident


# ── from the first detection to the intent ────────────────────────────────────────────────────────


async def test_the_first_detection_is_an_alert(world: World) -> None:
    world.circles()
    await world.look()
    (heard,) = await world.hear()
    assert (heard.mode, heard.subject) == (Mode.SEND, "incident:1")
    assert incident_in(heard) == await world.incident()
    assert (incident_in(heard).status, incident_in(heard).steps) == (IncidentStatus.OPEN, 1)
    assert await world.intents() == []


async def test_the_alert_is_edited_as_the_incident_goes_on(world: World) -> None:
    await world.circles_for(1)
    await world.hear()
    await world.circles_for(1)
    (heard,) = await world.hear()
    assert (heard.mode, heard.subject) == (Mode.EDIT, "incident:1")
    assert (incident_in(heard).steps, incident_in(heard).calls) == (2, 19)


async def test_the_third_step_is_one_intent_to_stop(world: World) -> None:
    await world.circles_for(3)
    (stop,) = await world.intents()
    session, incident = await world.session(), await world.incident()
    assert (stop.session_id, stop.incident_id, stop.ordered_by) == (session.id, incident.id, None)
    assert (stop.target.session, stop.target.pid, stop.target.pid_since_ts) == ("s-1", 1234, NOON - 9)
    assert stop.target.reason == "thrash_loop:10"
    assert incident.status is IncidentStatus.STOPPING
    assert incident_in((await world.hear())[-1]) == incident


async def test_an_agent_that_goes_on_is_not_meant_to_be_stopped_twice(world: World) -> None:
    await world.circles_for(8)
    assert len(await world.stops()) == 1
    assert len(await world.incidents()) == 1


async def test_an_agent_that_works_is_left_alone(world: World) -> None:
    for _ in range(5):
        world.works()
        await world.look()
    assert await world.incidents() == []
    assert await world.hear() == []


async def test_a_look_without_new_calls_is_no_step(world: World) -> None:
    await world.circles_for(2)
    for _ in range(5):
        await world.look()
    assert (await world.session()).streak.steps == 2
    await world.circles_for(1)
    assert len(await world.intents()) == 1


async def test_one_look_is_one_step_however_many_batches_it_reads(store: Database) -> None:
    world = World(store=store, log=CallLog(per_batch=7))
    for _ in range(10):
        world.circles()
    await world.look()
    assert (await world.session()).streak.steps == 1
    assert (await world.session()).memory.calls == 100


async def test_a_streak_survives_a_restart(tmp_path: Path) -> None:
    """And what was read is not read again."""
    async with open_database(tmp_path) as store:
        world = World(store=store)
        await world.circles_for(2)
    async with open_database(tmp_path) as store:
        world = world.restarted(store)
        await world.look()
        assert await world.intents() == []
        await world.circles_for(1)
        (stop,) = await world.intents()
        assert stop.target.reason == "thrash_loop:9"
        assert (await world.session()).memory.calls == 30


# ── what a log already held ───────────────────────────────────────────────────────────────────────


async def test_what_a_log_held_when_it_was_first_seen_is_not_judged(world: World) -> None:
    world.circles()
    world.clock.go_on(HOUR)
    await world.look()
    assert await world.incidents() == []
    assert (await world.session()).memory.calls == 10


async def test_it_is_not_judged_together_with_what_comes_later_either(world: World) -> None:
    """Nine calls of an hour ago and one of now are no loop of now."""
    world.circles()
    world.clock.go_on(HOUR)
    await world.look()
    world.works(1)
    await world.look()
    assert await world.incidents() == []


async def test_nor_when_both_are_read_in_the_same_look(world: World) -> None:
    world.circles()
    world.clock.go_on(HOUR)
    world.works(1)
    await world.look()
    await world.look()
    assert await world.incidents() == []


async def test_what_came_while_the_bot_was_away_is_not_judged(world: World) -> None:
    await world.circles_for(1)
    world.circles()
    await world.look(beats=60)
    world.circles()
    world.clock.go_on(HOUR)
    await world.look()
    (incident,) = await world.incidents()
    assert (incident.steps, incident.ended) == (2, Ended.QUIET)


async def test_a_loop_that_goes_on_is_judged_though_it_began_while_nobody_looked(world: World) -> None:
    for _ in range(30):
        world.circles()
        world.clock.go_on(BEAT)
    world.circles()
    await world.look()
    assert (await world.incident()).steps == 1


async def test_a_log_whose_clock_is_hours_off_is_judged_from_its_second_look_on(world: World) -> None:
    for _ in range(4):
        world.circles(offset=-5 * HOUR)
        await world.look()
    assert (await world.incident()).steps == 3
    assert len(await world.intents()) == 1


# ── how an incident ends ──────────────────────────────────────────────────────────────────────────


async def test_other_work_ends_the_incident(world: World) -> None:
    await world.circles_for(2)
    await world.hear()
    world.works()
    await world.look()
    (heard,) = await world.hear()
    incident = await world.incident()
    assert (heard.mode, incident_in(heard)) == (Mode.EDIT, incident)
    assert (incident.status, incident.ended) == (IncidentStatus.RESOLVED, Ended.RECOVERED)
    assert (await world.session()).streak.steps == 0


async def test_silence_ends_the_incident(world: World) -> None:
    await world.circles_for(2)
    await world.hear()
    await world.look(beats=9)
    assert (await world.incident()).closed_at is None
    world.clock.go_on(1)
    await world.look()
    assert (await world.incident()).ended is Ended.QUIET
    assert [heard.mode for heard in await world.hear()] == [Mode.EDIT]


async def test_another_process_begins_another_incident(world: World) -> None:
    await world.circles_for(2)
    world.circles(pid=5678)
    await world.look()
    first, second = await world.incidents()
    assert (first.ended, second.steps, second.closed_at) == (Ended.RESTARTED, 1, None)
    assert [heard.subject for heard in await world.hear()] == ["incident:1", "incident:2"]
    assert await world.intents() == []


# ── what may be done about it ─────────────────────────────────────────────────────────────────────


async def test_under_observe_nothing_is_stopped(world: World) -> None:
    world.watch_with(world.killer, OnDetection.OBSERVE)
    await world.circles_for(8)
    assert await world.stops() == []
    assert (await world.incident()).steps == 8


async def test_a_source_without_killer_is_only_observed(world: World) -> None:
    world.watch_with(None)
    await world.circles_for(8)
    assert await world.stops() == []
    (heard, *_) = await world.hear()
    assert isinstance(heard.notice, IncidentNotice)
    assert heard.notice.outlook.can_stop is False


async def test_under_ask_the_chat_is_asked_and_has_a_time_to_answer(world: World) -> None:
    world.watch_with(world.killer, OnDetection.ASK)
    await world.circles_for(2)
    await world.hear()
    asked_at = world.clock.now()
    await world.circles_for(1)
    asked, _ = await world.hear()
    assert isinstance(asked.notice, AskNotice)
    assert (asked.mode, asked.subject, asked.notice.stops_at) == (Mode.SEND, "question:1", asked_at + 300)
    await world.circles_for(4)
    assert await world.stops() == []
    await world.circles_for(1)
    assert len(await world.intents()) == 1
    closed = [heard for heard in await world.hear() if isinstance(heard.notice, AskNotice)]
    assert [(heard.mode, heard.subject) for heard in closed] == [(Mode.EDIT, "question:1")]


async def test_under_ask_a_snooze_gives_more_time(world: World) -> None:
    world.watch_with(world.killer, OnDetection.ASK)
    await world.circles_for(3)
    await world.scan.snooze(1, 900)
    await world.circles_for(15)
    assert await world.stops() == []
    await world.circles_for(1)
    assert len(await world.intents()) == 1


async def test_a_snooze_mutes_the_numbers_and_prevents_no_stop(world: World) -> None:
    await world.circles_for(1)
    await world.hear()
    snoozed = await world.scan.snooze(1, 900)
    assert snoozed == await world.incident()
    assert [incident_in(heard) for heard in await world.hear()] == [snoozed]
    await world.circles_for(1)
    assert await world.hear() == []
    await world.circles_for(1)
    assert len(await world.intents()) == 1
    assert [incident_in(heard).status for heard in await world.hear()] == [IncidentStatus.STOPPING]


async def test_what_is_over_cannot_be_snoozed(world: World) -> None:
    await world.circles_for(1)
    world.works()
    await world.look()
    await world.hear()
    assert await world.scan.snooze(1, 900) is None
    assert await world.scan.snooze(2, 900) is None
    assert await world.hear() == []


async def test_a_stop_ordered_before_the_incident_opened_is_the_stop_of_the_incident(store: Database) -> None:
    """There is one stop at a time, and an incident that waited for another one would wait for ever."""
    world = World(store=store, policy=ThrashPolicy(kill_after=1))
    world.works()
    await world.look()
    await world.agent_stop.order((await world.session()).id, pid=1234, by=42)
    world.circles()
    await world.look()
    assert (await world.incident()).status is IncidentStatus.STOPPING
    await world.agent_stop()
    assert len(world.killer.attempts) == 1
    assert (await world.incident()).status is IncidentStatus.STOPPED
    await _it_holds(world)
    assert (await world.incident()).closed_at is not None


async def test_an_incident_that_opened_during_the_second_attempt_ends_with_it(store: Database) -> None:
    world = World(store=store, policy=ThrashPolicy(kill_after=1), killer=ScriptedKiller(alive=True))
    world.circles()
    await world.look()
    await world.agent_stop()
    world.clock.go_on(BEAT)
    await world.agent_stop()
    (stop,) = await world.intents()
    assert stop.escalates is not None
    world.works()
    await world.look()
    world.circles()
    await world.look()
    world.killer.alive = None
    await world.agent_stop()
    await _it_holds(world)
    assert all(incident.closed_at is not None for incident in await world.incidents())


async def _it_holds(world: World) -> None:
    world.clock.go_on(BEAT)
    await world.look(beats=4)
    await world.agent_stop()


# ── several sources and sessions ──────────────────────────────────────────────────────────────────


async def test_a_source_that_raises_keeps_no_other_from_being_looked_at(world: World) -> None:
    broken = CallLog(name="broken", breaks=OSError("the disk is gone"))
    broken.calls = [call(world.clock.now() - n) for n in range(10)]
    world.watch.watched.insert(0, Watched(source=broken, killer=None, on_detection=OnDetection.STOP))
    world.circles()
    with pytest.raises(ExceptionGroup, match="some sources") as caught:
        await world.look()
    assert [str(error) for error in caught.value.exceptions] == ["the disk is gone"]
    assert (await world.incident()).source == "gateway"
    broken.breaks = None
    await world.look()
    assert [incident.source for incident in await world.incidents()] == ["gateway", "broken"]


async def test_a_source_that_raises_late_is_not_read_from_its_start_again(world: World) -> None:
    """A log with a million lines must get somewhere even if a look at it never comes to its end."""
    world.log.per_batch = 50_000
    world.log.calls = [call(NOON + n / 1000) for n in range(50_001)]
    world.log.breaks = OSError("the disk is gone")
    with pytest.raises(ExceptionGroup):
        await world.look()
    assert (await world.store.reading.cursors.of_source("gateway"))["log"].offset == 50_000
    world.log.breaks = None
    await world.look()
    assert (await world.session()).memory.calls == 50_001


async def test_a_session_is_judged_though_all_it_did_was_written_down_before_the_look_ended(
    world: World,
) -> None:
    world.log.per_batch = 50_000
    world.log.calls = [call(NOON - 60 + n / 1000, session="long", pid=None) for n in range(49_990)]
    world.circles()
    world.works(1, session="other")
    await world.look()
    assert len(world.log.calls) == 50_001
    assert {incident.agent for incident in await world.incidents()} == {"coder", "agent of s-1"}


@pytest.mark.parametrize(("ahead", "since"), [(-3600, -3600), (0, 0), (7200, 0)])
async def test_a_process_is_known_since_the_line_that_names_it_was_written_or_read(
    world: World, ahead: float, since: float
) -> None:
    """A log whose clock is ahead must not make a younger process pass for the one it means."""
    world.log.calls = [call(NOON + ahead, pid=11), call(NOON + ahead + 1, pid=11)]
    await world.look()
    assert (await world.session()).pid_since_ts == NOON + since


async def test_a_source_that_is_still_being_read_keeps_no_other_waiting(world: World) -> None:
    """The next look leaves it out and looks at the others."""
    slow = BlockingLog(name="slow")
    gateway, world.watch.watched = (
        world.watch.watched,
        [Watched(source=slow, killer=None, on_detection=OnDetection.STOP)],
    )
    first = asyncio.ensure_future(world.scan())
    await asyncio.to_thread(slow.is_read.wait, 10)
    world.watch.watched += gateway
    world.circles()
    await world.scan()
    assert [heard.mode for heard in await world.hear()] == [Mode.SEND]
    assert set(world.scan.looking) == {"slow"}
    slow.may_end.set()
    await first
    assert world.scan.looking == {}


@dataclass(slots=True, kw_only=True)
class BlockingLog(CallLog):
    """A source whose files hang, as on a network that is down."""

    is_read: threading.Event = field(default_factory=threading.Event)
    may_end: threading.Event = field(default_factory=threading.Event)

    def read_new(self, cursors: Mapping[str, Cursor], now: float) -> Iterator[Batch]:
        self.is_read.set()
        self.may_end.wait(30)
        yield from CallLog.read_new(self, cursors, now)


async def test_what_a_session_is_known_by_is_kept_up_to_date(world: World) -> None:
    world.log.calls = [
        replace_call(call(NOON, tokens=5, is_error=True, pid=11), parent="main"),
        call(NOON + 1, agent="renamed", tokens=7, pid=12),
        call(NOON + 2, agent="renamed", is_error=True),
    ]
    await world.look()
    session = await world.session()
    assert (session.agent, session.parent, session.errors, session.memory.tokens) == (
        "renamed",
        "main",
        2,
        12,
    )
    assert (session.pid, session.pid_since_ts) == (12, NOON)
    assert (session.first_ts, session.last_ts, session.seen_at) == (NOON, NOON + 2, NOON)


def replace_call(given_call: ToolCall, *, parent: str) -> ToolCall:
    return ToolCall(
        session=given_call.session,
        agent=given_call.agent,
        ts=given_call.ts,
        tool=given_call.tool,
        args=given_call.args,
        parent=parent,
        pid=given_call.pid,
        is_error=given_call.is_error,
        tokens=given_call.tokens,
    )


numbers = count(1)
made_calls = st.tuples(
    st.sampled_from(["one", "other"]), st.sampled_from(["pytest -x", "pytest -x 1", "cat README.md"])
)
looks = st.lists(st.lists(made_calls, max_size=20), min_size=1, max_size=5)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(drawn=looks)
async def test_no_finding_about_one_agent_comes_from_anothers_calls(
    store: Database, drawn: list[list[tuple[str, str]]]
) -> None:
    """Two sessions in one log are judged as each of them is in a log of its own."""
    example = next(numbers)
    logs = {name: CallLog(name=f"{name} {example}") for name in ("both", "one", "other")}
    killer, watch = ScriptedKiller(), FixedWatch()
    watch.watched = [
        Watched(source=log, killer=killer, on_detection=OnDetection.STOP) for log in logs.values()
    ]
    world = World(store=store, watch=watch)
    for calls in drawn:
        for number, (session, command) in enumerate(calls):
            made = call(world.clock.now() - 20 + number, command, session=session, tokens=1)
            logs["both"].calls.append(made)
            logs[session].calls.append(made)
        await world.look()
    for session in ("one", "other"):
        alone = await _known_of(world, logs[session].name, session)
        assert await _known_of(world, logs["both"].name, session) == alone


async def _known_of(world: World, source: str, name: str) -> list[object]:
    """All that is known of a session, but for where it was read."""
    found = await world.store.reading.sessions.of_source(source, [name])
    known: list[object] = []
    for session in found.values():
        known.append(replace(session, id=0, source=""))
        newest = await world.store.reading.incidents.newest(10_000)
        incidents = [incident for incident in newest if incident.session_id == session.id]
        known += [replace(incident, id=0, session_id=0, source="") for incident in incidents]
        stops = await world.store.reading.stops.of_session(session.id, 100)
        known += [(stop.state, stop.ordered_at, stop.target.reason) for stop in stops]
    return known


async def test_a_rehearsed_stop_is_not_tried_again(world: World) -> None:
    world.killer.outcomes.append(exited(Outcome.DRY_RUN))
    await world.circles_for(3)
    await world.agent_stop()
    await world.circles_for(5)
    await world.agent_stop()
    (stop,) = await world.stops()
    assert (stop.state, len(world.killer.attempts)) == (StopState.OVER, 1)
    assert (await world.incident()).status is IncidentStatus.DRY_RUN

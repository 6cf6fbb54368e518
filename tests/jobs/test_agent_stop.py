"""The stop: intended, carried out once, reported once, and looked at again until it has held."""

import asyncio
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from jobs.agent_stop import Order, has_called_since
from jobs.alert.notice import IncidentNotice, Starter, StillRunningNotice, StopNotice
from jobs.alert.outgoing import Mode
from jobs.contents import with_contents
from jobs.killers.registry import killers_of
from jobs.ports import Outcome, Stop, Stopped, StopState
from jobs.store.database import open_database
from jobs.thrash.incident import IncidentStatus
from jobs.thrash.policy import ThrashPolicy
from jobs.watchlist.killers import CommandSpec
from tests.fakes import NOON, ScriptedKiller, exited
from tests.jobs.world import BEAT, Heard, World
from tests.store.rows import a_session

HOUR = 3600.0
POLICY = ThrashPolicy()
PATIENCE = 60
"""Seconds for what would otherwise never end."""


@pytest.fixture
async def thrashing(world: World) -> World:
    """A world in which the stop of session `s-1` is intended, and all else was heard."""
    await world.circles_for(3)
    await world.hear()
    return world


def reports(heard: list[Heard]) -> list[StopNotice]:
    return [each.notice for each in heard if isinstance(each.notice, StopNotice)]


def still_running(heard: list[Heard]) -> list[StillRunningNotice]:
    return [each.notice for each in heard if isinstance(each.notice, StillRunningNotice)]


# ── carried out ───────────────────────────────────────────────────────────────────────────────────


async def test_an_intent_goes_to_the_killer_and_its_outcome_to_the_chat(thrashing: World) -> None:
    (intent,) = await thrashing.intents()
    await thrashing.agent_stop()
    assert (thrashing.killer.attempts, thrashing.killer.harder) == ([intent.target], [False])
    edit, reply = await thrashing.hear()
    incident = await thrashing.incident()
    assert isinstance(edit.notice, IncidentNotice)
    assert (edit.mode, edit.notice.incident) == (Mode.EDIT, incident)
    assert incident.status is IncidentStatus.STOPPED
    assert (reply.mode, reply.subject, reply.silent) == (Mode.REPLY, "incident:1", False)
    assert reply.notice == StopNotice(
        session=1,
        agent="agent of s-1",
        source="gateway",
        incident=incident,
        reason="thrash_loop:10",
        outcome="stopped",
        detail="process 1234 has exited",
        took=0,
        ordered_by=None,
        escalated=False,
    )


async def test_an_intent_is_carried_out_once(thrashing: World) -> None:
    for _ in range(3):
        await thrashing.agent_stop()
    assert len(thrashing.killer.attempts) == 1
    assert len(reports(await thrashing.hear())) == 1


async def test_the_report_of_a_snoozed_incident_is_silent(thrashing: World) -> None:
    await thrashing.scan.snooze(1, 900)
    await thrashing.agent_stop()
    assert [heard.silent for heard in await thrashing.hear() if heard.mode is Mode.REPLY] == [True]


@pytest.mark.parametrize("outcome", [Outcome.FAILED, Outcome.REFUSED])
async def test_an_attempt_that_did_not_work_is_told_and_looked_at_again(
    thrashing: World, outcome: Outcome
) -> None:
    thrashing.killer.outcomes.append(Stopped(outcome=outcome, detail="no such pid"))
    await thrashing.agent_stop()
    (report,) = reports(await thrashing.hear())
    assert (report.outcome, report.detail) == (outcome, "no such pid")
    assert (await thrashing.incident()).status is IncidentStatus.STOP_FAILED
    (stop,) = await thrashing.stops()
    assert stop.state is StopState.WATCHED


async def test_a_rehearsal_is_over_at_once(thrashing: World) -> None:
    thrashing.killer.outcomes.append(exited(Outcome.DRY_RUN))
    thrashing.killer.alive = True
    await thrashing.agent_stop()
    assert [report.outcome for report in reports(await thrashing.hear())] == ["dry_run"]
    thrashing.clock.go_on(BEAT)
    await thrashing.agent_stop()
    assert await thrashing.hear() == []
    assert (await thrashing.incident()).status is IncidentStatus.DRY_RUN


async def test_a_killer_that_is_gone_from_the_watch_list_is_a_failure(thrashing: World) -> None:
    thrashing.watch_with(None)
    await thrashing.agent_stop()
    (report,) = reports(await thrashing.hear())
    assert (report.outcome, report.detail) == ("failed", "source gateway has no killer any more")


async def test_a_source_that_is_gone_from_the_watch_list_is_a_failure(thrashing: World) -> None:
    thrashing.watch.watched.clear()
    await thrashing.agent_stop()
    assert [report.outcome for report in reports(await thrashing.hear())] == ["failed"]


async def test_a_killer_that_raises_has_failed_and_keeps_no_other_stop_waiting(world: World) -> None:
    for _ in range(3):
        world.circles(session="s-1")
        world.circles(session="s-2")
        await world.look()
    world.killer.outcomes.append(OSError("no more processes"))
    await world.agent_stop()
    told = {(report.outcome, report.detail) for report in reports(await world.hear())}
    assert told == {("failed", "OSError: no more processes"), ("stopped", "process 1234 has exited")}


# ── cut short ─────────────────────────────────────────────────────────────────────────────────────


async def test_an_intent_left_by_a_crash_is_carried_out_and_reported_once(tmp_path: Path) -> None:
    async with open_database(tmp_path) as store:
        world = World(store=store)
        await world.circles_for(3)
        await world.hear()
    async with open_database(tmp_path) as store:
        world = world.restarted(store)
        await world.agent_stop()
        await world.agent_stop()
        assert len(world.killer.attempts) == 1
        assert len(reports(await world.hear())) == 1


async def test_a_stop_that_is_cut_short_stays_intended_and_is_done_again(thrashing: World) -> None:
    thrashing.killer.may_answer.clear()
    first = asyncio.ensure_future(thrashing.agent_stop())
    await thrashing.killer.asked.wait()
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    assert len(await thrashing.intents()) == 1
    assert await thrashing.hear() == []
    thrashing.killer.may_answer.set()
    await thrashing.agent_stop()
    assert len(thrashing.killer.attempts) == 2
    assert len(reports(await thrashing.hear())) == 1


async def test_a_slow_stop_is_not_begun_again_by_the_next_run(thrashing: World) -> None:
    thrashing.killer.may_answer.clear()
    first = asyncio.ensure_future(thrashing.agent_stop())
    await thrashing.killer.asked.wait()
    async with asyncio.timeout(PATIENCE):
        await thrashing.agent_stop()
    thrashing.clock.go_on(7)
    thrashing.killer.may_answer.set()
    await first
    assert len(thrashing.killer.attempts) == 1
    (report,) = reports(await thrashing.hear())
    assert report.took == 7


async def test_runs_that_begin_together_carry_out_an_intent_once(thrashing: World) -> None:
    await asyncio.gather(*(thrashing.agent_stop() for _ in range(5)))
    assert len(thrashing.killer.attempts) == 1
    assert len(reports(await thrashing.hear())) == 1


async def test_a_run_that_looked_too_early_does_not_carry_out_what_another_has(thrashing: World) -> None:
    (intent,) = await thrashing.intents()
    await thrashing.agent_stop()
    await thrashing.agent_stop._alone(intent, thrashing.agent_stop._carry_out)
    assert len(thrashing.killer.attempts) == 1


async def test_a_slow_stop_keeps_no_other_waiting(world: World) -> None:
    world.killer.may_answer.clear()
    await world.circles_for(3)
    slow = asyncio.ensure_future(world.agent_stop())
    await world.killer.asked.wait()
    other = ScriptedKiller()
    world.watch_with(other)
    await world.circles_for(3, session="s-2")
    async with asyncio.timeout(PATIENCE):
        await world.agent_stop()
    assert [target.session for target in other.attempts] == ["s-2"]
    world.killer.may_answer.set()
    await slow


# ── looked at again ───────────────────────────────────────────────────────────────────────────────


async def test_whose_sub_agent_goes_on_is_told(thrashing: World) -> None:
    async with thrashing.store.transaction() as tables:
        session = await tables.sessions.get(1)
        assert session is not None
        await tables.sessions.save(replace(session, parent="main"))
    await thrashing.agent_stop()
    await thrashing.hear()
    thrashing.killer.alive = True
    thrashing.clock.go_on(POLICY.settle)
    await thrashing.agent_stop()
    notices = [message.notice for message in await thrashing.hear()]
    (told,) = (notice for notice in notices if isinstance(notice, StillRunningNotice))
    assert told.starter == Starter(agent="main")


async def test_a_process_that_lives_is_told_and_tried_once_harder(thrashing: World) -> None:
    await thrashing.agent_stop()
    await thrashing.hear()
    stopped_at = thrashing.clock.now()
    thrashing.killer.alive = True
    thrashing.clock.go_on(POLICY.settle)
    await thrashing.agent_stop()
    edit, reply = await thrashing.hear()
    assert edit.mode is Mode.EDIT
    assert (reply.mode, reply.subject) == (Mode.REPLY, "incident:1")
    assert reply.notice == StillRunningNotice(
        session=1,
        agent="agent of s-1",
        source="gateway",
        incident=1,
        pid=1234,
        newest_ts=NOON + 2 * BEAT,
        stopped_at=stopped_at,
        had_stopped=True,
        escalating=True,
    )
    assert (await thrashing.incident()).status is IncidentStatus.STILL_RUNNING
    await thrashing.agent_stop()
    assert thrashing.killer.harder == [False, True]
    assert thrashing.killer.attempts[0] == thrashing.killer.attempts[1]
    assert [report.escalated for report in reports(await thrashing.hear())] == [True]


async def test_if_the_harder_attempt_does_not_hold_a_person_is_called(thrashing: World) -> None:
    thrashing.killer.alive = True
    for _ in range(10):
        await thrashing.agent_stop()
        thrashing.circles()
        await thrashing.look()
    assert thrashing.killer.harder == [False, True]
    assert [notice.escalating for notice in still_running(await thrashing.hear())] == [True, False]
    assert [stop.state for stop in await thrashing.stops()] == [StopState.OVER, StopState.OVER]


async def test_a_process_is_given_time_to_end(thrashing: World) -> None:
    await thrashing.agent_stop()
    await thrashing.hear()
    thrashing.killer.alive = True
    thrashing.clock.go_on(POLICY.settle - 0.1)
    await thrashing.agent_stop()
    assert await thrashing.hear() == []


async def test_runs_that_overlap_tell_once_that_it_still_runs(thrashing: World) -> None:
    """A look at a process may take longer than the beat; the second must not try harder once more."""
    await thrashing.agent_stop()
    await thrashing.hear()
    thrashing.killer.alive = True
    thrashing.clock.go_on(BEAT)
    thrashing.killer.asked.clear()
    thrashing.killer.may_answer.clear()
    first = asyncio.ensure_future(thrashing.agent_stop())
    await thrashing.killer.asked.wait()
    second = asyncio.ensure_future(thrashing.agent_stop())
    thrashing.killer.may_answer.set()
    await asyncio.gather(first, second)
    assert len(still_running(await thrashing.hear())) == 1
    await thrashing.agent_stop()
    assert thrashing.killer.harder == [False, True]


@pytest.mark.parametrize("offset", [0, -5 * HOUR, 5 * HOUR])
async def test_an_agent_that_goes_on_is_noticed_whatever_its_logs_clock_says(
    world: World, offset: float
) -> None:
    for _ in range(4):
        world.circles(offset=offset)
        await world.look()
    await world.agent_stop()
    await world.hear()
    for _ in range(3):
        world.circles(offset=offset)
        await world.look()
        await world.agent_stop()
    heard = await world.hear()
    assert [(notice.pid, notice.escalating) for notice in still_running(heard)] == [(None, True)]
    await world.agent_stop()
    assert world.killer.harder == [False, True]


async def test_calls_made_before_the_stop_are_no_sign_of_life(thrashing: World) -> None:
    """Those that were under way, or written since the last look."""
    await thrashing.agent_stop()
    await thrashing.hear()
    thrashing.clock.go_on(2)
    thrashing.circles()
    thrashing.clock.go_on(BEAT - 5)
    await thrashing.look()
    await thrashing.agent_stop()
    assert await thrashing.hear() == []


async def test_nor_are_they_when_they_are_read_late(thrashing: World) -> None:
    """The bot, or the machine, was away in between."""
    thrashing.circles()
    await thrashing.agent_stop()
    await thrashing.hear()
    thrashing.clock.go_on(2 * BEAT)
    await thrashing.look(beats=0)
    await thrashing.agent_stop()
    assert still_running(await thrashing.hear()) == []


@pytest.mark.parametrize(
    ("outcome", "has_other_step", "had_stopped", "escalates"),
    [
        (Outcome.STOPPED, False, True, True),
        (Outcome.FAILED, False, False, True),
        (Outcome.REFUSED, False, False, False),
        (Outcome.REFUSED, True, False, True),
    ],
)
async def test_an_agent_that_goes_on_is_tried_once_more_unless_that_is_useless(
    thrashing: World, outcome: Outcome, *, has_other_step: bool, had_stopped: bool, escalates: bool
) -> None:
    """What a guard has refused it refuses again; and a stop that never worked is not said to have worked."""
    thrashing.watch.watched = [replace(thrashing.watch.watched[0], has_other_step=has_other_step)]
    thrashing.killer.outcomes.append(exited(outcome))
    await thrashing.agent_stop()
    thrashing.clock.go_on(BEAT)
    thrashing.circles()
    await thrashing.look()
    await thrashing.hear()
    await thrashing.agent_stop()
    (told,) = still_running(await thrashing.hear())
    assert (told.had_stopped, told.escalating) == (had_stopped, escalates)
    assert len(await thrashing.intents()) == int(escalates)
    expected = IncidentStatus.STILL_RUNNING if had_stopped else IncidentStatus.STOP_FAILED
    assert (await thrashing.incident()).status is expected


async def test_a_killer_whose_program_was_swapped_is_told_and_its_harder_step_follows(
    thrashing: World, tmp_path: Path
) -> None:
    program = tmp_path / "stop"
    program.write_text("what was approved")
    cli = with_contents(CommandSpec(argv=(f"{program}",), then="hard"))
    hard = with_contents(CommandSpec(argv=("/bin/echo", "{session}", "is gone")))
    program.write_text("planted")
    thrashing.watch_with(killers_of({"cli": cli, "hard": hard})["cli"])
    thrashing.watch.watched = [replace(thrashing.watch.watched[0], has_other_step=True)]
    await thrashing.agent_stop()
    assert [(report.outcome, report.detail) for report in reports(await thrashing.hear())] == [
        ("refused", f"{program} is not the file that was approved")
    ]
    thrashing.clock.go_on(BEAT)
    thrashing.circles()
    await thrashing.look()
    await thrashing.agent_stop()
    await thrashing.agent_stop()
    assert [(report.outcome, report.detail) for report in reports(await thrashing.hear())] == [
        ("stopped", "the command ended with exit code 0: s-1 is gone")
    ]


async def test_a_stop_that_held_closes_the_incident(thrashing: World) -> None:
    await thrashing.agent_stop()
    await thrashing.hear()
    thrashing.clock.go_on(BEAT)
    await thrashing.look()
    thrashing.clock.go_on(2 * POLICY.settle)
    await thrashing.agent_stop()
    assert (await thrashing.incident()).closed_at is None
    thrashing.clock.go_on(0.5)
    await thrashing.agent_stop()
    incident = await thrashing.incident()
    assert (incident.status, incident.closed_at) == (IncidentStatus.STOPPED, thrashing.clock.now())
    assert [stop.state for stop in await thrashing.stops()] == [StopState.OVER]
    assert await thrashing.hear() == []


async def test_a_stop_has_not_held_before_anybody_has_looked(thrashing: World) -> None:
    """After an hour in which no scan has worked nothing is known."""
    await thrashing.agent_stop()
    thrashing.clock.go_on(HOUR)
    await thrashing.agent_stop()
    assert (await thrashing.incident()).closed_at is None
    await thrashing.look()
    await thrashing.agent_stop()
    assert (await thrashing.incident()).closed_at is not None


async def test_a_new_process_is_not_the_one_that_was_stopped(thrashing: World) -> None:
    """A supervisor that starts the agent anew: its calls are no sign that the stop did not hold."""
    await thrashing.agent_stop()
    thrashing.clock.go_on(BEAT)
    thrashing.works(pid=5678)
    await thrashing.look()
    await thrashing.agent_stop()
    assert still_running(await thrashing.hear()) == []
    assert await thrashing.agent_stop.stopped_among([await thrashing.session()]) == set()


async def test_a_failure_that_is_not_seen_again_leaves_the_incident_to_the_scan(thrashing: World) -> None:
    thrashing.killer.outcomes.append(exited(Outcome.FAILED))
    await thrashing.agent_stop()
    thrashing.clock.go_on(BEAT)
    await thrashing.look(beats=4)
    await thrashing.agent_stop()
    assert [stop.state for stop in await thrashing.stops()] == [StopState.OVER]
    assert (await thrashing.incident()).closed_at is None
    await thrashing.look(beats=10)
    await thrashing.look()
    assert (await thrashing.incident()).closed_at is not None


async def test_a_session_that_loops_again_later_is_stopped_again(thrashing: World) -> None:
    await thrashing.agent_stop()
    thrashing.clock.go_on(BEAT)
    await thrashing.look(beats=4)
    await thrashing.agent_stop()
    await thrashing.circles_for(3)
    await thrashing.agent_stop()
    assert thrashing.killer.harder == [False, False]
    assert len(await thrashing.incidents()) == 2


async def test_a_killer_that_is_gone_sees_no_process(thrashing: World) -> None:
    await thrashing.agent_stop()
    thrashing.watch_with(None)
    thrashing.killer.alive = True
    thrashing.clock.go_on(BEAT)
    await thrashing.agent_stop()
    assert still_running(await thrashing.hear()) == []


async def test_a_session_counts_as_stopped_until_it_calls_again(thrashing: World) -> None:
    async def stopped() -> set[int]:
        return await thrashing.agent_stop.stopped_among([await thrashing.session()])

    assert await stopped() == set()
    await thrashing.agent_stop()
    assert await stopped() == {1}
    thrashing.clock.go_on(BEAT)
    await thrashing.circles_for(1)
    assert await stopped() == set()


async def test_a_session_whose_stop_did_not_work_does_not_count_as_stopped(thrashing: World) -> None:
    thrashing.killer.outcomes.append(exited(Outcome.FAILED))
    await thrashing.agent_stop()
    assert await thrashing.agent_stop.stopped_among([await thrashing.session()]) == set()


@pytest.mark.parametrize(
    ("last_ts_before", "last_ts", "seen_at", "expected"),
    [
        pytest.param(-1, -1, 0, False, id="nothing new"),
        pytest.param(-1, 5, 60, False, id="settling"),
        pytest.param(-1, 6, 60, True, id="its clock agrees with ours"),
        pytest.param(-65, 6, 60, True, id="its clock agrees, its last call was a look ago"),
        pytest.param(-66, 6, 60, False, id="its clock may be wrong"),
        pytest.param(5, 6, 60, True, id="its clock is a little ahead"),
        pytest.param(6, 30, 60, False, id="its clock is ahead"),
        pytest.param(-3600, -3500, 65, False, id="wrong, and found within a beat"),
        pytest.param(-3600, -3500, 66, True, id="wrong, and found after a whole beat"),
        pytest.param(3600, 3601, 66, True, id="far ahead, and found after a whole beat"),
        pytest.param(-1, 4, 90, False, id="its clock agrees, and the look was late"),
    ],
)
def test_when_a_session_has_called_since_its_stop(
    last_ts_before: float, last_ts: float, seen_at: float, *, expected: bool
) -> None:
    """In seconds after the stop, which was carried out as soon as it was ordered."""
    session = replace(a_session(), last_ts=NOON + last_ts_before)
    stop = Stop.intended(session, None, ordered_by=None, now=NOON)
    done = replace(stop, state=StopState.WATCHED, finished_at=NOON)
    later = replace(session, last_ts=NOON + last_ts, seen_at=NOON + seen_at)
    assert has_called_since(done, later, POLICY) is expected


# ── ordered by a person ───────────────────────────────────────────────────────────────────────────


async def test_an_order_is_an_intent(world: World) -> None:
    world.works()
    await world.look()
    assert await world.agent_stop.order(1, pid=1234, by=42) is Order.TAKEN
    (intent,) = await world.intents()
    assert (intent.ordered_by, intent.incident_id) == (42, None)
    assert (intent.target.reason, intent.target.score) == ("ordered", 0)
    await world.agent_stop()
    (heard,) = await world.hear()
    assert (heard.mode, heard.subject) == (Mode.REPLY, None)
    assert [report.ordered_by for report in reports([heard])] == [42]


async def test_an_order_is_about_the_incident_that_is_open(world: World) -> None:
    await world.circles_for(1)
    await world.hear()
    assert await world.agent_stop.order(1, pid=1234, by=42) is Order.TAKEN
    (intent,) = await world.intents()
    assert (intent.incident_id, intent.target.reason) == (1, "thrash_loop:9")
    assert (await world.incident()).status is IncidentStatus.STOPPING
    assert [heard.mode for heard in await world.hear()] == [Mode.EDIT]
    await world.circles_for(3)
    assert len(await world.stops()) == 1


async def test_an_order_while_a_stop_is_under_way_is_no_second_one(thrashing: World) -> None:
    assert await thrashing.agent_stop.order(1, pid=1234, by=42) is Order.UNDER_WAY
    assert len(await thrashing.intents()) == 1


async def test_an_order_after_a_stop_that_did_not_work_is_taken(thrashing: World) -> None:
    thrashing.killer.outcomes.append(exited(Outcome.FAILED))
    await thrashing.agent_stop()
    assert await thrashing.agent_stop.order(1, pid=1234, by=42) is Order.TAKEN
    await thrashing.agent_stop()
    assert (await thrashing.incident()).status is IncidentStatus.STOPPED
    assert thrashing.killer.harder == [False, False]


@pytest.mark.parametrize("pid", [None, 5678])
async def test_an_order_is_not_about_another_process(world: World, pid: int | None) -> None:
    world.works()
    await world.look()
    assert await world.agent_stop.order(1, pid=pid, by=42) is Order.RESTARTED
    assert await world.intents() == []


async def test_an_order_needs_a_session(world: World) -> None:
    assert await world.agent_stop.order(99, pid=None, by=42) is Order.UNKNOWN


async def test_an_order_needs_a_killer(world: World) -> None:
    world.works()
    await world.look()
    world.watch_with(None)
    assert await world.agent_stop.order(1, pid=1234, by=42) is Order.NO_KILLER
    world.watch.watched.clear()
    assert await world.agent_stop.order(1, pid=1234, by=42) is Order.NO_KILLER
    assert await world.intents() == []


async def test_when_an_order_is_escalated_it_is_still_that_persons(world: World) -> None:
    world.works()
    await world.look()
    await world.agent_stop.order(1, pid=1234, by=42)
    world.killer.alive = True
    await world.agent_stop()
    world.clock.go_on(BEAT)
    await world.agent_stop()
    await world.agent_stop()
    assert [report.ordered_by for report in reports(await world.hear())] == [42, 42]
    assert msgspec.structs.asdict(world.killer.attempts[1])["reason"] == "ordered"


# ── a clock that is set, a flood, a killer that breaks ────────────────────────────────────────────


async def test_a_stop_is_looked_at_again_though_the_clock_was_set_back(thrashing: World) -> None:
    """It counts from then on, not from when the clock has caught up."""
    thrashing.clock.go_on(HOUR)
    await thrashing.agent_stop()
    await thrashing.hear()
    thrashing.clock.go_on(-HOUR)
    await thrashing.agent_stop()
    thrashing.killer.alive = True
    thrashing.clock.go_on(POLICY.settle)
    await thrashing.agent_stop()
    assert len(still_running(await thrashing.hear())) == 1


async def test_of_two_orders_for_one_session_only_the_newer_is_looked_at(world: World) -> None:
    """Two people who stop the same agent are told once that it goes on."""
    world.works()
    await world.look()
    for person in (1, 2):
        await world.agent_stop.order(1, pid=1234, by=person)
        await world.agent_stop()
    await world.hear()
    world.killer.alive = True
    world.clock.go_on(POLICY.settle)
    await world.agent_stop()
    assert len(still_running(await world.hear())) == 1
    assert [stop.state for stop in await world.stops()][:2] == [StopState.OVER, StopState.OVER]


async def test_a_killer_that_cannot_say_whether_it_lives_is_no_sign_of_life(thrashing: World) -> None:
    await thrashing.agent_stop()
    await thrashing.hear()
    thrashing.killer.breaks = OSError("no more files")
    thrashing.clock.go_on(POLICY.settle)
    await thrashing.agent_stop()
    assert still_running(await thrashing.hear()) == []

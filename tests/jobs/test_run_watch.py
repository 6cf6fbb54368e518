"""What the watcher notices: outputs, the ends of agents' work, and runs that do not come."""

from dataclasses import replace
from datetime import tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from jobs.alert.outgoing import Mode
from jobs.alert.run_notice import RunNotice
from jobs.artifacts.find import FoundOutputs
from jobs.store.database import Database
from jobs.verification.history import Trigger
from jobs.verification.spec import Names, WorkflowSpec
from jobs.verification.verdict import Outcome, Sighting
from tests.fakes import HandClock
from tests.jobs.runs import BEAT, SETTLE, Runs, at, slot
from tests.store.rows import a_session

DAILY = "0 2 * * *"
HOUR = 3600.0
DAY = 24 * HOUR


@pytest.fixture
def runs(store: Database, tmp_path: Path) -> Runs:
    folder = tmp_path / "out"
    folder.mkdir()
    return Runs(store=store, folder=folder)


# ── outputs ───────────────────────────────────────────────────────────────────────────────────────


async def test_what_lay_there_at_first_is_remembered_and_not_verified(runs: Runs) -> None:
    path = runs.write("bad")
    await runs.look(10)
    assert await runs.outcomes() == []
    seen = (await runs.state()).seen
    assert seen
    assert seen.path == str(path)


async def test_an_output_that_appears_is_verified_once_it_has_settled(runs: Runs) -> None:
    await runs.look()
    runs.write("good")
    written_at = runs.clock.now()
    await runs.look(3)
    verdict = await runs.verdict()
    assert (verdict.by, verdict.outcome, verdict.as_of) == (Trigger.OUTPUT, Outcome.PASS, None)
    assert verdict.at == written_at + SETTLE
    await runs.look(10)
    assert len(await runs.verdicts()) == 1


async def test_an_output_that_grows_is_verified_once_it_is_whole(runs: Runs) -> None:
    """Not in between."""
    await runs.look()
    path = runs.write("bad")
    for number in range(10):
        with path.open("a") as file:
            file.write(f"{number}")
        runs.touch(path)
        await runs.look()
    assert await runs.outcomes() == []
    path.write_text("good and whole")
    runs.touch(path)
    await runs.look(3)
    assert await runs.outcomes() == ["pass"]


@pytest.mark.parametrize("output", ["report-0.txt", "report-*.txt"])
async def test_an_output_that_never_settles_is_verified_as_it_is(runs: Runs, output: str) -> None:
    """Each time that it has been changing for the settle time and the grace; no run is missing then."""
    runs.specify(output=output, grace=60.0, every=120.0)
    await runs.look()
    began = runs.clock.now()
    for number in range(30):
        runs.write(f"bad {number}", f"report-{number if '*' in output else 0}.txt")
        await runs.look()
    assert [verdict.at - began for verdict in await runs.verdicts()] == [
        SETTLE + 60,
        2 * (SETTLE + 60) + BEAT,
    ]
    assert await runs.outcomes() == ["fail", "fail"]


@pytest.mark.parametrize("how", ["replaced", "rewritten", "touched"])
async def test_whatever_changes_it_an_output_is_verified_again(runs: Runs, how: str) -> None:
    """Replaced by another file, rewritten, or only touched: a producer may have come to the same result."""
    path = runs.write("good")
    await runs.look()
    match how:
        case "replaced":
            runs.put("good")
        case "rewritten":
            runs.write("good and longer")
        case _:
            runs.touch(path)
    await runs.look(3)
    assert await runs.outcomes() == ["pass"]


async def test_an_output_that_vanishes_and_comes_back_is_no_news(runs: Runs) -> None:
    """Its disk was unplugged, for example."""
    runs.write("good")
    await runs.look()
    aside = runs.folder.rename(runs.folder.with_name("aside"))
    await runs.look(3)
    aside.rename(runs.folder)
    await runs.look(5)
    assert await runs.outcomes() == []


async def test_of_a_pattern_the_newest_is_looked_at(runs: Runs) -> None:
    runs.specify(output="report-*.txt")
    await runs.look()
    for number, text in enumerate(("good", "bad")):
        runs.write(text, f"report-{number}.txt")
        await runs.look(3)
    assert await runs.outcomes() == ["pass", "fail"]


async def test_the_date_is_the_days(runs: Runs) -> None:
    runs.specify(output="report-{date}.txt")
    await runs.look()
    runs.write("good", "report-2027-01-15.txt")
    runs.write("bad", "report-2027-01-16.txt")
    await runs.look(3)
    assert await runs.outcomes() == ["pass"]


async def test_a_restart_verifies_nothing_again(runs: Runs) -> None:
    await runs.look()
    runs.write("good")
    await runs.look(3)
    again = runs.restarted()
    await again.look(5)
    assert len(await again.verdicts()) == 1


async def test_an_output_that_a_reporter_told_of_is_verified_once(runs: Runs) -> None:
    """The watcher sees it, too, and a little later."""
    await runs.look()
    runs.write("bad")
    await runs.report(reported="r-7")
    await runs.look(5)
    assert await runs.keys() == ["run:r-7"]
    assert len(await runs.hear()) == 1


async def test_what_a_command_verified_before_the_first_look_is_remembered(runs: Runs) -> None:
    """A command has recorded a verdict before the bot watched the workflow."""
    runs.write("bad")
    await runs.report(Trigger.COMMAND)
    await runs.verify()
    assert (await runs.state()).judged_until == 0
    await runs.look(5)
    assert await runs.outcomes() == ["fail"]
    assert (await runs.state()).judged_until > 0


# ── outputs that came while the bot was away ──────────────────────────────────────────────────────


async def test_what_came_meanwhile_is_judged_as_of_when_it_came(runs: Runs) -> None:
    await runs.look()
    runs.clock.go_on(HOUR)
    runs.write("good")
    came_at = runs.clock.now()
    runs.clock.go_on(DAY)
    again = runs.restarted()
    await again.look(4)
    verdict = await again.verdict()
    assert (verdict.outcome, verdict.as_of) == (Outcome.PASS, came_at + SETTLE)


async def test_an_old_file_that_was_put_there_meanwhile_is_no_fresher_for_it(runs: Runs) -> None:
    """`cp -p` keeps its time; it came after the last look at the earliest."""
    await runs.look()
    looked_at = runs.clock.now() - BEAT
    old = HandClock(runs.clock.now() - 30 * DAY)
    replace(runs, clock=old).write("bad")
    runs.clock.go_on(DAY)
    again = runs.restarted()
    await again.look(4)
    assert (await again.verdict()).as_of == looked_at + SETTLE


# ── runs that do not come ─────────────────────────────────────────────────────────────────────────


async def _watched(runs: Runs, **fields: object) -> None:
    """Have the workflow watched since 01:00."""
    runs.specify(**({"expect": DAILY, "grace": 1800.0} | fields))
    runs.clock.time = at("2027-01-15T01:00")
    await runs.look()
    runs.clock.time = at("2027-01-15T02:00")


async def test_a_run_that_does_not_come_is_missing_once(runs: Runs) -> None:
    """After its slot and the grace, one verdict and one alert, and not one a minute."""
    await _watched(runs)
    await runs.look_until(at("2027-01-15T02:30") - 1)
    assert await runs.outcomes() == []
    await runs.look_until(at("2027-01-15T03:00"))
    verdict = await runs.verdict()
    assert (verdict.outcome, verdict.by) == (Outcome.MISSING, Trigger.SLOT)
    run = await runs.run_of(verdict)
    assert (run.key, run.slot) == (slot("2027-01-15T02:00"), at("2027-01-15T02:00"))
    [alert] = await runs.hear()
    assert isinstance(alert.notice, RunNotice)
    assert (alert.mode, alert.notice.slot) == (Mode.SEND, at("2027-01-15T02:00"))
    assert alert.notice.verdict.outcome is Outcome.MISSING
    assert alert.notice.failures == 1


async def test_a_run_that_came_in_time_is_not_missing(runs: Runs) -> None:
    await _watched(runs)
    runs.clock.go_on(600)
    runs.write("bad")
    await runs.look_until(at("2027-01-15T03:00"))
    assert await runs.outcomes() == ["fail"]


async def test_a_late_run_closes_it(runs: Runs) -> None:
    """Its verdict is one of the same run, and edits the same message."""
    await _watched(runs)
    await runs.look_until(at("2027-01-15T02:35"))
    [alert] = await runs.hear()
    runs.clock.go_on(1200)
    runs.write("good")
    await runs.look(4)
    missing, late = await runs.verdicts()
    assert (missing.outcome, late.outcome) == (Outcome.MISSING, Outcome.PASS)
    assert missing.run_id == late.run_id
    [closed] = await runs.hear()
    assert (closed.mode, closed.subject) == (Mode.EDIT, alert.subject)
    assert isinstance(closed.notice, RunNotice)
    assert closed.notice.resolved_by == late.run_id
    state = await runs.state()
    assert (state.failures, state.alerted_run) == (0, None)


async def test_the_alert_of_a_run_that_had_been_good_is_closed_as_any_other(runs: Runs) -> None:
    await _watched(runs)
    for text in ("good", "bad"):
        runs.write(text)
        await runs.look(4)
    runs.clock.time = at("2027-01-16T01:55")
    await runs.look_until(at("2027-01-16T02:35"))
    assert {message.subject for message in await runs.hear()} == {"run:1", "run:2"}
    runs.clock.time = at("2027-01-17T02:01")
    runs.write("good")
    await runs.look(4)
    notices = [message.notice for message in await runs.hear()]
    assert [notice.resolved_by for notice in notices if isinstance(notice, RunNotice)] == [3, 3]


async def test_a_late_run_that_fails_is_told_and_stays_one_failure(runs: Runs) -> None:
    await _watched(runs)
    await runs.look_until(at("2027-01-15T02:35"))
    await runs.hear()
    runs.write("bad")
    await runs.look(4)
    [alert] = await runs.hear()
    assert isinstance(alert.notice, RunNotice)
    assert (alert.mode, alert.notice.failures) == (Mode.SEND, 1)
    assert alert.notice.verdict.outcome is Outcome.FAIL


async def test_the_next_run_is_another_one(runs: Runs) -> None:
    await _watched(runs)
    await runs.look_until(at("2027-01-15T02:35"))
    runs.clock.time = at("2027-01-16T02:05")
    runs.write("good")
    await runs.look_until(at("2027-01-16T02:40"))
    assert await runs.keys() == [slot("2027-01-15T02:00"), slot("2027-01-16T02:00")]
    assert await runs.outcomes() == ["missing", "pass"]


async def test_a_run_that_was_verified_otherwise_is_not_missing(runs: Runs) -> None:
    """By a command, for example."""
    await _watched(runs)
    await runs.report(Trigger.COMMAND)
    await runs.look_until(at("2027-01-15T03:00"))
    assert await runs.outcomes() == ["fail"]


async def test_a_report_that_is_being_judged_is_no_missing_run(runs: Runs) -> None:
    await _watched(runs)
    runs.clock.go_on(600)
    await runs.report(reported="r-7")
    runs.clock.go_on(HOUR)
    await runs.run_watch()
    assert await runs.outcomes() == []
    await runs.verify()
    assert await runs.outcomes() == ["fail"]


async def test_slots_before_a_workflow_was_watched_do_not_count(runs: Runs) -> None:
    runs.specify(expect="* * * * *", grace=60.0)
    await runs.look()
    assert await runs.outcomes() == []


async def test_a_workflow_that_was_taken_out_for_a_while_missed_nothing(runs: Runs) -> None:
    await _watched(runs)
    specs, runs.watch.specs = runs.watch.specs, []
    await runs.look()
    runs.clock.go_on(3 * DAY)
    runs.watch.specs = specs
    await runs.look(3)
    assert await runs.outcomes() == []


async def test_slots_that_passed_while_the_bot_was_away_are_judged_by_what_lies_there(runs: Runs) -> None:
    """Each by the output of its own date; the one of which there is none is missing."""
    await _watched(runs, output="report-{date}.txt")
    for day, text in ((15, "good"), (17, "bad")):
        runs.clock.time = at(f"2027-01-{day}T02:10")
        runs.write(text, f"report-2027-01-{day}.txt")
    runs.clock.time = at("2027-01-17T12:00")
    again = runs.restarted()
    await again.look(4)
    found = {(await again.run_of(v)).key: v for v in await again.verdicts()}
    assert {key: verdict.outcome for key, verdict in found.items()} == {
        slot("2027-01-15T02:00"): Outcome.PASS,
        slot("2027-01-16T02:00"): Outcome.MISSING,
        slot("2027-01-17T02:00"): Outcome.FAIL,
    }
    assert found[slot("2027-01-15T02:00")].as_of == at("2027-01-15T02:10") + SETTLE
    assert len(await again.verdicts()) == 3


async def test_a_run_that_came_before_a_missing_one_does_not_resolve_its_alert(runs: Runs) -> None:
    """However late it is judged."""
    await _watched(runs, output="report-{date}.txt")
    runs.clock.time = at("2027-01-16T02:10")
    runs.write("good", "report-2027-01-16.txt")
    runs.clock.time = at("2027-01-17T12:00")
    again = runs.restarted()
    await again.look(4)
    assert (await again.state()).alerted_run is not None
    notices = [message.notice for message in await again.hear()]
    assert {notice.resolved_by for notice in notices if isinstance(notice, RunNotice)} == {None}
    assert sorted(verdict.run_id for verdict in await again.verdicts()) == [1, 2, 3]


async def test_one_output_may_stand_for_all_slots_that_passed_meanwhile(runs: Runs) -> None:
    """Where each run overwrites the output of the one before, nobody can tell what the earlier ones had left."""
    await _watched(runs, unchanged=True)
    runs.clock.time = at("2027-01-17T02:10")
    runs.write("good")
    runs.clock.time = at("2027-01-17T12:00")
    again = runs.restarted()
    await again.look(4)
    assert await again.keys() == [slot(f"2027-01-{day}T02:00") for day in (15, 16, 17)]
    assert await again.outcomes() == ["pass", "pass", "pass"]
    assert [asked.past.last_content for asked in runs.judge.asked] == ["", "", ""]


async def test_after_a_long_absence_only_the_last_slots_are_told(runs: Runs) -> None:
    await _watched(runs, expect="0 * * * *")
    runs.clock.go_on(30 * DAY)
    again = runs.restarted()
    await again.look(3)
    assert len(await again.verdicts()) == 24


@pytest.mark.parametrize(
    ("begin", "end", "slots"),
    [
        ("2027-03-27T12:00", "2027-03-29T12:00", ["2027-03-28T01:00", "2027-03-29T00:30"]),
        ("2027-10-30T12:00", "2027-11-01T12:00", ["2027-10-31T00:30", "2027-11-01T01:30"]),
    ],
    ids=["skipped hour", "repeated hour"],
)
async def test_when_the_clocks_are_set_a_run_is_missing_once(
    runs: Runs, begin: str, end: str, slots: list[str]
) -> None:
    """02:30 in Berlin does not come on one night of the year, and comes twice on another."""
    berlin: tzinfo = ZoneInfo("Europe/Berlin")
    there = replace(runs, zone=berlin)
    there.specify(expect="30 2 * * *", grace=60.0)
    there.clock.time = at(begin)
    await there.look()
    while there.clock.now() < at(end):
        there.clock.go_on(900)
        await there.look()
    assert await there.keys() == [slot(text) for text in slots]


# ── runs that come every so often ─────────────────────────────────────────────────────────────────


async def test_what_should_come_every_day_is_missing_once_until_it_comes(runs: Runs) -> None:
    runs.specify(every=DAY, grace=HOUR)
    await runs.look()
    begun = runs.clock.now() - BEAT
    runs.clock.time = begun + DAY + HOUR
    await runs.look()
    assert await runs.outcomes() == []
    await runs.look()
    runs.clock.go_on(5 * DAY)
    await runs.look(3)
    verdict = await runs.verdict()
    assert verdict.outcome is Outcome.MISSING
    assert (await runs.run_of(verdict)).slot == begun + DAY
    [alert] = await runs.hear()
    runs.write("good")
    await runs.look(4)
    [closed] = await runs.hear()
    assert (closed.mode, closed.subject) == (Mode.EDIT, alert.subject)
    runs.clock.go_on(DAY + 2 * HOUR)
    await runs.look(2)
    assert await runs.outcomes() == ["missing", "pass", "missing"]


async def test_what_is_still_being_written_is_not_missing(runs: Runs) -> None:
    runs.specify(every=DAY, grace=HOUR)
    await runs.look()
    runs.clock.go_on(DAY + 2 * HOUR)
    runs.write("good")
    await runs.look()
    assert await runs.outcomes() == []
    await runs.look(3)
    assert await runs.outcomes() == ["pass"]


async def test_what_came_while_the_bot_was_away_is_not_missing(runs: Runs) -> None:
    runs.specify(every=DAY, grace=HOUR)
    await runs.look()
    runs.clock.go_on(HOUR)
    runs.write("good")
    runs.clock.go_on(DAY)
    again = runs.restarted()
    await again.look(4)
    assert await again.outcomes() == ["pass"]


# ── a clock that was ahead ────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("is_restarted", [False, True])
@pytest.mark.parametrize("fields", [{"expect": DAILY, "grace": 60.0}, {"every": DAY, "grace": 60.0}])
async def test_a_clock_that_was_ahead_for_a_while_hides_no_missing_run(
    runs: Runs, fields: dict[str, object], *, is_restarted: bool
) -> None:
    """What it had made of the time ahead counts as now once it is right again."""
    runs.specify(**fields)
    await runs.look()
    right = runs.clock.now()
    runs.clock.go_on(365 * DAY)
    if "every" in fields:
        runs.write("good")
    await runs.look(5)
    runs.clock.time = right
    known = len(await runs.outcomes())
    there = runs.restarted() if is_restarted else runs
    await there.look(2)
    assert len(await runs.outcomes()) == known
    runs.clock.go_on(DAY + HOUR)
    await there.look(2)
    assert (await runs.outcomes())[known:] == ["missing"]


# ── the end of an agent's work ────────────────────────────────────────────────────────────────────


async def _work(runs: Runs, session: str = "s-1", *, pid: int | None = None) -> None:
    """Have a call of an agent called `coder` read, made just now."""
    now = runs.clock.now()
    async with runs.store.transaction() as tables:
        known = (await tables.sessions.of_source("gateway", [session])).get(session)
        seen = known or replace(a_session(session=session), pid=pid, pid_since_ts=now, first_ts=now)
        await tables.sessions.save(replace(seen, last_ts=now, seen_at=now))


@pytest.mark.parametrize("name", ["coder", "s-1"])
async def test_a_session_that_falls_silent_is_the_end_of_a_run(runs: Runs, name: str) -> None:
    """Named by its agent or by itself; once, and of no other source."""
    runs.specify(after=f"gateway:{name}")
    runs.write("good")
    await runs.look()
    await _work(runs)
    await runs.look(2)
    assert await runs.outcomes() == []
    await runs.look(10)
    verdict = await runs.verdict()
    run = await runs.run_of(verdict)
    assert (verdict.by, run.reported) == (Trigger.SESSION, "s-1")
    await runs.restarted().look(5)
    assert len(await runs.verdicts()) == 1


@pytest.mark.parametrize("after", ["gateway:other", "elsewhere:coder", None])
async def test_the_end_of_other_work_is_none(runs: Runs, after: str | None) -> None:
    runs.specify(after=after)
    await runs.look()
    await _work(runs)
    await runs.look(10)
    assert await runs.outcomes() == []


async def test_work_from_before_the_workflow_was_watched_is_no_run(runs: Runs) -> None:
    runs.specify(after="gateway:coder")
    await _work(runs)
    runs.clock.go_on(HOUR)
    await runs.look(5)
    assert await runs.outcomes() == []


async def test_a_session_is_silent_only_if_its_log_was_read_since(runs: Runs) -> None:
    """Between two scans nothing is heard, whatever the agent does."""
    runs.specify(after="gateway:coder")
    await runs.look()
    await _work(runs)
    for _ in range(20):
        await runs.run_watch()
        runs.clock.go_on(BEAT)
    assert await runs.waiting() == []


async def test_each_time_that_a_session_falls_silent_is_the_end_of_a_run(runs: Runs) -> None:
    """One that left nothing new is judged by what lies there, which an earlier run had left."""
    runs.specify(after="gateway:coder")
    await runs.look()
    runs.write("good")
    for _ in range(2):
        await _work(runs)
        await runs.look(10)
        runs.clock.go_on(HOUR)
    first, second = await runs.verdicts()
    assert first.run_id != second.run_id
    assert second.by is Trigger.SESSION


async def test_an_agent_whose_process_is_gone_has_ended(runs: Runs) -> None:
    """Long before it would be called silent, and once its log was read to the end."""
    runs.specify(after="gateway:coder", settle=HOUR)
    runs.processes.living = {1234}
    await runs.look()
    await _work(runs, pid=1234)
    await runs.look(3)
    runs.processes.living = set()
    await runs.look()
    assert await runs.outcomes() == []
    await runs.look(3)
    assert (await runs.verdict()).by is Trigger.SESSION


async def test_a_process_that_was_never_seen_alive_is_not_known_to_have_ended(runs: Runs) -> None:
    """The log may have been written on another machine."""
    runs.specify(after="gateway:coder", settle=HOUR)
    await runs.look()
    await _work(runs, pid=1234)
    await runs.look(10)
    assert await runs.outcomes() == []


async def test_work_that_ended_while_the_bot_was_away_is_judged_as_of_its_output(runs: Runs) -> None:
    runs.specify(after="gateway:coder")
    await runs.look()
    runs.clock.go_on(HOUR)
    await _work(runs)
    runs.write("good")
    came_at = runs.clock.now()
    runs.clock.go_on(DAY)
    again = runs.restarted()
    await again.look(4)
    assert [verdict.as_of for verdict in await again.verdicts()] == [came_at + SETTLE]


# ── all of them ───────────────────────────────────────────────────────────────────────────────────


class PartlyBroken(FoundOutputs):
    """Cannot look for the outputs of one workflow."""

    def newest(self, spec: WorkflowSpec, names: Names) -> Sighting | None:
        if spec.name == "broken":
            raise OSError("it is gone")
        return super().newest(spec, names)


async def test_a_workflow_that_cannot_be_looked_at_keeps_no_other_from_it(runs: Runs) -> None:
    """The failure names it."""
    runs.watch.specs = [runs.spec("broken"), runs.spec("fine")]
    watch = replace(runs.run_watch, outputs=PartlyBroken())
    with pytest.raises(ExceptionGroup) as failure:
        await watch()
    assert failure.value.exceptions[0].__notes__ == ["workflow broken"]
    assert set(await runs.store.reading.workflows.all()) == {"fine"}


async def test_what_a_look_has_found_is_committed_together(runs: Runs) -> None:
    """A report, and that its output was seen: one without the other would be lost, or told twice."""
    await runs.look()
    runs.write("good")
    await runs.look(2)
    await runs.run_watch()
    [report] = await runs.waiting()
    seen = (await runs.state()).seen
    assert seen
    assert seen.mtime_ns / 1e9 == report.at - 2 * BEAT

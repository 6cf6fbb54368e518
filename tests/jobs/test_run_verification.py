"""From a report to its verdict, and what the chat hears of it."""

import asyncio
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import aiosqlite
import msgspec
import pytest

from jobs.alert.outgoing import Mode
from jobs.alert.run_notice import RunNotice, UnverifiedNotice, VerifiedNotice
from jobs.store.database import Database
from jobs.verification.history import Trigger, Waiting
from jobs.verification.verdict import Outcome
from tests.jobs.runs import Runs, Told, at, slot

DAILY = "0 2 * * *"


@pytest.fixture
def runs(store: Database, tmp_path: Path) -> Runs:
    folder = tmp_path / "out"
    folder.mkdir()
    return Runs(store=store, folder=folder)


def heard_of(told: Told) -> RunNotice:
    assert isinstance(told.notice, RunNotice)
    return told.notice


# ── a verdict ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_report_becomes_a_run_with_a_verdict(runs: Runs) -> None:
    path = runs.write("good")
    await runs.report(reported="r-7", said="done")
    await runs.verify()
    verdict = await runs.verdict()
    assert (verdict.workflow, verdict.by, verdict.outcome) == ("nightly", Trigger.REPORT, Outcome.PASS)
    assert verdict.judged.artifact
    assert verdict.judged.artifact.path == str(path)
    run = await runs.run_of(verdict)
    assert (run.key, run.reported, run.at) == ("run:r-7", "r-7", runs.clock.now())
    assert await runs.waiting() == []
    assert runs.judge.asked[0].said == "done"


async def test_a_good_run_is_no_news(runs: Runs) -> None:
    runs.write("good")
    await runs.report()
    await runs.verify()
    assert await runs.hear() == []


async def test_what_did_not_deliver_is_an_alert(runs: Runs) -> None:
    path = runs.write("bad")
    await runs.report()
    await runs.verify()
    [told] = await runs.hear()
    notice, verdict = heard_of(told), await runs.verdict()
    assert (told.mode, told.subject) == (Mode.SEND, f"run:{verdict.run_id}")
    assert notice.verdict == verdict.judged.verdict
    assert (notice.workflow, notice.path, notice.failures) == ("nightly", str(path), 1)
    assert notice.workflow_id == (await runs.state()).id


async def test_what_left_nothing_is_an_alert_each_time(runs: Runs) -> None:
    """Two runs that leave nothing are two runs."""
    for _ in range(2):
        await runs.report()
        await runs.verify()
        runs.clock.go_on(3600)
    assert await runs.outcomes() == ["fail", "fail"]
    assert [heard_of(told).failures for told in await runs.hear()] == [1, 2]


async def test_a_workflow_that_fails_again_and_again_is_one_message_an_hour(runs: Runs) -> None:
    """It shows the newest run and is edited without a sound; a good run closes them all."""
    heard: list[Told] = []
    for number in range(9):
        runs.put(f"bad {number}")
        await runs.report()
        await runs.verify()
        heard += await runs.hear()
        runs.clock.go_on(900)
    first, *_, last = ids = [verdict.run_id for verdict in await runs.verdicts()]
    sent = [told.subject for told in heard if told.mode is Mode.SEND]
    assert sent == [f"run:{ids[0]}", f"run:{ids[4]}", f"run:{ids[8]}"]
    assert [heard_of(told).run for told in heard] == ids
    assert [heard_of(told).failures for told in heard] == list(range(1, 10))
    runs.put("good")
    await runs.report()
    await runs.verify()
    closed = await runs.hear()
    assert [(told.mode, told.subject) for told in closed] == [(Mode.EDIT, subject) for subject in sent[::-1]]
    assert {heard_of(told).resolved_by for told in closed} == {(await runs.verdicts())[-1].run_id}
    assert (heard_of(closed[0]).run, heard_of(closed[-1]).run) == (last, first)


async def test_a_run_that_is_good_at_second_sight_closes_the_alert_that_shows_it(runs: Runs) -> None:
    """It was told in the alert of the run before."""
    for number in range(2):
        runs.put(f"bad {number}")
        await runs.report(reported=f"r-{number}")
        await runs.verify()
    alert, *_ = await runs.hear()
    runs.put("good")
    await runs.report(reported="r-1")
    await runs.verify()
    [closed] = await runs.hear()
    newest = (await runs.verdicts())[-1].run_id
    assert (closed.mode, closed.subject) == (Mode.EDIT, alert.subject)
    assert (heard_of(closed).run, heard_of(closed).resolved_by) == (newest, newest)


async def test_an_alert_that_goes_on_is_silenced_as_it_stands(runs: Runs) -> None:
    for number in range(2):
        runs.put(f"bad {number}")
        await runs.report()
        await runs.verify()
        await runs.hear()
    first, second = await runs.verdicts()
    await runs.verification.silence(await runs.run_of(first), 3600)
    [edited] = await runs.hear()
    assert (edited.mode, edited.subject) == (Mode.EDIT, f"run:{first.run_id}")
    assert (heard_of(edited).run, heard_of(edited).failures) == (second.run_id, 2)
    assert heard_of(edited).silenced_until


async def test_a_run_that_says_it_failed_has_delivered(runs: Runs) -> None:
    """It is told as what it is, counts as no failure, and closes an earlier alert."""
    runs.write("bad")
    await runs.report()
    await runs.verify()
    await runs.hear()
    runs.put("failed")
    await runs.report()
    await runs.verify()
    told, closed = await runs.hear()
    assert (told.mode, heard_of(told).verdict.says_failed) == (Mode.SEND, True)
    assert heard_of(closed).resolved_by == heard_of(told).run
    assert (await runs.verdicts())[-1].says_failed
    assert (await runs.state()).failures == 0


async def test_a_good_run_closes_the_alert_of_the_last_bad_one(runs: Runs) -> None:
    heard: list[Told] = []
    for text in ("bad 1", "bad 2", "good"):
        runs.put(text)
        await runs.report()
        await runs.verify()
        heard += await runs.hear()
        runs.clock.go_on(60)
    first, second, closed = heard
    assert [told.mode for told in (first, second, closed)] == [Mode.SEND, Mode.EDIT, Mode.EDIT]
    assert closed.subject == second.subject == first.subject
    assert heard_of(closed).resolved_by == (await runs.verdicts())[-1].run_id
    assert heard_of(closed).failures == 2
    state = await runs.state()
    assert (state.failures, state.alerted_run) == (0, None)


async def test_while_it_is_silenced_runs_are_recorded_and_not_told(runs: Runs) -> None:
    runs.write("bad")
    await runs.report()
    await runs.verify()
    [alert] = await runs.hear()
    async with runs.store.transaction() as tables:
        silenced_until = runs.clock.now() + 3600
        await tables.workflows.save(replace(await runs.state(), silenced_until=silenced_until))
    runs.put("bad again")
    await runs.report()
    await runs.verify()
    assert await runs.hear() == []
    assert await runs.outcomes() == ["fail", "fail"]
    runs.put("good")
    await runs.report()
    await runs.verify()
    [closed] = await runs.hear()
    assert (closed.mode, closed.subject) == (Mode.EDIT, alert.subject)


# ── verified once ─────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("reported", ["r-7", None])
async def test_the_same_run_reported_twice_is_verified_once(runs: Runs, reported: str | None) -> None:
    """At once or later, whoever says it."""
    runs.write("bad")
    await runs.report(reported=reported)
    await runs.report(reported=reported)
    await runs.verify()
    runs.clock.go_on(600)
    await runs.report(Trigger.OUTPUT)
    await runs.verify()
    await runs.verdict()
    assert len(await runs.hear()) == 1
    assert await runs.waiting() == []


async def test_a_run_that_left_nothing_is_verified_once(runs: Runs) -> None:
    for _ in range(2):
        await runs.report(reported="r-7")
        await runs.verify()
    await runs.verdict()


async def test_an_id_that_comes_later_names_the_run_that_was_seen_already(runs: Runs) -> None:
    """The watcher was faster than the reporter."""
    runs.write("good")
    await runs.report(Trigger.OUTPUT)
    await runs.verify()
    runs.clock.go_on(60)
    await runs.report(reported="r-7")
    await runs.verify()
    assert (await runs.run_of(await runs.verdict())).reported == "r-7"


async def test_another_run_that_left_nothing_of_its_own_is_another_run(runs: Runs) -> None:
    """The output of the run before still lies there."""
    runs.write("good")
    for name in ("r-7", "r-8"):
        await runs.report(reported=name)
        await runs.verify()
    assert await runs.keys() == ["run:r-7", "run:r-8"]


async def test_an_output_that_was_written_again_is_verified_again(runs: Runs) -> None:
    runs.write("bad")
    await runs.report(reported="r-7")
    await runs.verify()
    [alert] = await runs.hear()
    runs.clock.go_on(60)
    runs.put("good")
    await runs.report(reported="r-7")
    await runs.verify()
    assert await runs.keys() == ["run:r-7", "run:r-7"]
    assert await runs.outcomes() == ["fail", "pass"]
    [closed] = await runs.hear()
    assert (closed.mode, closed.subject) == (Mode.EDIT, alert.subject)
    assert heard_of(closed).resolved_by == heard_of(alert).run


async def test_within_a_slot_there_is_one_run(runs: Runs) -> None:
    """Whatever its reporters call it."""
    runs.specify(expect=DAILY)
    runs.write("good")
    for name in ("r-7", "r-8"):
        await runs.report(reported=name)
        await runs.verify()
    verdict = await runs.verdict()
    run = await runs.run_of(verdict)
    assert (run.key, run.slot, run.reported) == (slot("2027-01-15T02:00"), at("2027-01-15T02:00"), "r-7")


# ── who asks gets an answer ───────────────────────────────────────────────────────────────────────

WAITING = msgspec.json.encode(Waiting(chat="-1001", message=42)).decode()


def answered(told: list[Told]) -> VerifiedNotice:
    [notice] = [each.notice for each in told if isinstance(each.notice, VerifiedNotice)]
    return notice


async def test_who_asks_in_the_chat_gets_a_verdict_each_time(runs: Runs) -> None:
    """It is a new verdict of the same run, as of the time of the first as long as the output is the same."""
    runs.write("good")
    await runs.report(Trigger.OUTPUT)
    await runs.verify()
    first = await runs.verdict()
    runs.clock.go_on(7200)
    await runs.report(Trigger.CHAT, answer=WAITING)
    await runs.verify()
    _, second = await runs.verdicts()
    assert (second.run_id, second.as_of) == (first.run_id, first.at)
    assert [asked.now for asked in runs.judge.asked] == [first.at, first.at]
    answer = answered(await runs.hear())
    assert (answer.run, answer.as_of, answer.verdict.outcome) == (first.run_id, first.at, Outcome.PASS)


async def test_a_changed_output_is_judged_as_of_now(runs: Runs) -> None:
    runs.write("bad")
    await runs.report(reported="r-7")
    await runs.verify()
    first = await runs.verdict()
    runs.clock.go_on(7200)
    runs.write("good")
    await runs.report(Trigger.CHAT, run_id=first.run_id, answer=WAITING)
    await runs.verify()
    _, second = await runs.verdicts()
    assert (second.run_id, second.as_of, second.outcome) == (first.run_id, None, Outcome.PASS)
    assert runs.judge.asked[-1].now == runs.clock.now()


async def test_an_earlier_run_is_judged_by_its_own_output(runs: Runs) -> None:
    """Not by the newest of those that match."""
    runs.specify(output="*.txt")
    old = runs.write("good", "[old] {date}.txt")
    await runs.report(reported="r-7")
    await runs.verify()
    first = await runs.verdict()
    runs.clock.go_on(60)
    runs.write("bad", "new.txt")
    await runs.report(Trigger.CHAT, run_id=first.run_id, answer=WAITING)
    await runs.verify()
    assert (await runs.outcomes(), runs.judge.asked[-1].path) == (["pass", "pass"], str(old))


@pytest.mark.parametrize("name", ["report.txt", "another.txt"])
async def test_the_output_of_a_later_run_is_no_earlier_runs(runs: Runs, name: str) -> None:
    """The first one's output was overwritten, or it had left none: no verdict is made, and the person is told why."""
    runs.specify(output="*.txt")
    if name == "report.txt":
        runs.put("bad")
    await runs.report(reported="r-7")
    await runs.verify()
    runs.put("good", name)
    await runs.report(reported="r-8")
    await runs.verify()
    first, second = await runs.verdicts()
    await runs.hear()
    await runs.report(Trigger.CHAT, run_id=first.run_id, answer=WAITING)
    await runs.verify()
    assert await runs.outcomes() == ["fail", "pass"]
    refusal = UnverifiedNotice(workflow="nightly", run=first.run_id, replaced_by=second.run_id)
    assert [told.notice for told in await runs.hear()] == [refusal]
    assert await runs.waiting() == []


async def test_an_earlier_run_is_judged_as_of_its_first_verdict_however_many_followed(runs: Runs) -> None:
    runs.specify(output="*.txt")
    runs.write("good", "first.txt")
    await runs.report(reported="first")
    await runs.verify()
    first = await runs.verdict()
    for number in range(45):
        runs.clock.go_on(60)
        runs.write("good", f"{number}.txt")
        await runs.report(reported=f"{number}")
        await runs.verify()
    await runs.report(Trigger.CHAT, run_id=first.run_id, answer=WAITING)
    await runs.verify()
    assert runs.judge.asked[-1].now == first.at


async def test_a_run_that_does_not_exist_any_more_is_the_newest_one(runs: Runs) -> None:
    runs.write("good")
    await runs.report(Trigger.CHAT, run_id=999, answer=WAITING)
    await runs.verify()
    assert answered(await runs.hear()).verdict.outcome is Outcome.PASS


# ── as of when ────────────────────────────────────────────────────────────────────────────────────


async def test_a_report_is_judged_as_of_now(runs: Runs) -> None:
    runs.write("good")
    await runs.report()
    runs.clock.go_on(3)
    await runs.verify()
    assert (await runs.verdict()).as_of is None
    assert runs.judge.asked[0].now == runs.clock.now()


async def test_a_report_that_waited_while_the_bot_was_away_is_judged_as_of_its_own_time(runs: Runs) -> None:
    runs.write("good")
    reported_at = (await runs.report()).at
    runs.clock.go_on(86_400)
    await runs.verify()
    assert (await runs.verdict()).as_of == reported_at
    assert runs.judge.asked[0].now == reported_at


async def test_an_output_that_was_written_since_is_judged_as_of_now(runs: Runs) -> None:
    await runs.report()
    runs.clock.go_on(86_400)
    runs.write("good")
    await runs.verify()
    assert (await runs.verdict()).as_of is None


# ── what a run is compared with ───────────────────────────────────────────────────────────────────


async def test_a_run_is_compared_with_the_one_before(runs: Runs) -> None:
    runs.specify(unchanged=True)
    for text in ("good 1", "good 2"):
        runs.put(text)
        await runs.report()
        await runs.verify()
    first, _ = await runs.verdicts()
    assert runs.judge.asked[1].past.last_content == first.judged.content


async def test_a_run_that_is_judged_again_is_not_compared_with_itself(runs: Runs) -> None:
    runs.specify(unchanged=True)
    runs.put("good")
    for _ in range(2):
        await runs.report(Trigger.CHAT)
        await runs.verify()
    assert [asked.past.last_content for asked in runs.judge.asked] == ["", ""]


# ── several at once ───────────────────────────────────────────────────────────────────────────────


async def test_a_judging_that_takes_long_keeps_no_other_workflow_waiting(runs: Runs) -> None:
    """And of its own workflow the next report waits for it."""
    runs.watch.specs = [runs.spec("slow"), runs.spec("quick")]
    runs.judge.slow = {"slow"}
    runs.write("good")
    for workflow in ("slow", "slow", "quick"):
        await runs.report(workflow=workflow, reported=f"r-{workflow}")
    slow = asyncio.ensure_future(runs.verification())
    assert await asyncio.to_thread(runs.judge.begun.acquire, timeout=60)
    assert await runs.verification() == 0
    assert await runs.verification() is None
    assert [verdict.workflow for verdict in await runs.verdicts()] == ["quick"]
    runs.judge.may_end.set()
    assert await slow == 0
    await runs.verify()
    assert [verdict.workflow for verdict in await runs.verdicts()] == ["quick", "slow"]


async def test_reports_are_dealt_with_once_however_many_look(runs: Runs) -> None:
    runs.write("good")
    for number in range(5):
        await runs.report(reported=f"r-{number}")
    await asyncio.gather(*(runs.verification() for _ in range(20)))
    await runs.verify()
    assert sorted(await runs.keys()) == [f"run:r-{number}" for number in range(5)]


async def test_a_judging_that_is_cut_short_is_made_again(runs: Runs) -> None:
    """The bot was stopped meanwhile; what the abandoned judging says later is not heard."""
    runs.judge.slow = {"nightly"}
    runs.write("good")
    await runs.report()
    cut_short = asyncio.ensure_future(runs.verification())
    assert await asyncio.to_thread(runs.judge.begun.acquire, timeout=60)
    cut_short.cancel()
    await asyncio.gather(cut_short, return_exceptions=True)
    assert await runs.outcomes() == []
    runs.judge.may_end.set()
    await runs.restarted().verify()
    assert await runs.outcomes() == ["pass"]


# ── what goes wrong ───────────────────────────────────────────────────────────────────────────────


async def test_what_cannot_be_judged_has_not_delivered(runs: Runs) -> None:
    """And the reports behind it are dealt with."""
    runs.judge.breaks = RecursionError("too deep")
    await runs.report(reported="r-7")
    await runs.report(reported="r-8")
    await runs.verify()
    assert await runs.outcomes() == ["fail", "fail"]
    failure = (await runs.verdicts())[0].judged.verdict.failure
    assert failure
    assert failure.reason == "the output cannot be judged: RecursionError"


async def test_a_workflow_that_is_not_watched_any_more_is_not_verified(runs: Runs) -> None:
    """Its reports wait for an hour: a watch list that was saved half-way loses none."""
    gone = await runs.report(workflow="gone")
    await runs.report()
    runs.clock.go_on(3600)
    await runs.verify()
    assert [verdict.workflow for verdict in await runs.verdicts()] == ["nightly"]
    assert await runs.waiting() == [gone]
    runs.clock.go_on(1)
    await runs.verify()
    assert await runs.waiting() == []


async def test_whoever_waits_for_the_verdict_of_such_a_workflow_is_told_at_once(runs: Runs) -> None:
    """And once, however many look."""
    await runs.report(Trigger.CHAT, workflow="gone", answer=WAITING)
    await asyncio.gather(*(runs.verification() for _ in range(5)))
    assert [told.notice for told in await runs.hear()] == [UnverifiedNotice(workflow="gone")]
    assert await runs.waiting() == []


async def test_what_a_person_waits_for_goes_first(runs: Runs) -> None:
    for number in range(3):
        await runs.report(reported=f"r-{number}")
    await runs.report(Trigger.CHAT, answer=WAITING)
    await runs.verification()
    assert (await runs.verdict()).by is Trigger.CHAT


async def test_runs_are_verified_while_the_file_fails(runs: Runs, store: Database) -> None:
    """In memory, with what was known before; and then it is in the file."""
    runs.write("bad")
    await runs.report(reported="r-7")
    await runs.verify()
    await runs.report(reported="r-8")
    await store._opened.writer.execute("PRAGMA query_only = ON")
    with pytest.raises(aiosqlite.OperationalError) as failure:
        await runs.verify()
    assert await store.endure(failure.value)
    await runs.verify()
    runs.put("good")
    await runs.report(reported="r-9")
    await runs.verify()
    assert await store.recover()
    assert await runs.outcomes() == ["fail", "fail", "pass"]
    assert await runs.waiting() == []
    [told] = await runs.hear()
    assert heard_of(told).resolved_by == (await runs.verdicts())[-1].run_id


def test_a_judging_that_takes_long_keeps_no_program_from_its_end(tmp_path: Path) -> None:
    """It is abandoned, and made again at the next start."""
    script = """
import asyncio, pathlib, sys
from jobs.store.database import open_database
from tests.jobs.runs import Runs

async def main():
    folder = pathlib.Path(sys.argv[1])
    async with open_database(folder) as store:
        runs = Runs(store=store, folder=folder)
        runs.judge.slow = {"nightly"}
        runs.write("good")
        await runs.report()
        judging = asyncio.ensure_future(runs.verification())
        await asyncio.to_thread(runs.judge.begun.acquire)
        judging.cancel()
        await asyncio.gather(judging, return_exceptions=True)

asyncio.run(main())
"""
    command = [sys.executable, "-c", script, str(tmp_path)]
    began = time.monotonic()
    subprocess.run(command, check=True, timeout=120)  # noqa: S603 - our own
    assert time.monotonic() - began < 50, "it has waited for the judging, which gives up after a minute"

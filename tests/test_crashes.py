"""A bot that is killed between two steps loses nothing, and repeats nothing that matters."""

import asyncio
import json
import random
import signal
from typing import Literal

import pytest

from tests.botapi import GROUP, USER
from tests.crash_scene import Database, Person, commanded, known, pressed, said_in
from tests.crashing import Crash
from tests.pinned import pinned
from tests.stage import PATIENCE, PROCESS_KILLER, SOURCE, Stage, ending_of
from tests.ugly_updates import ugly

When = Literal["before", "after"]
Place = tuple[When, str]

FETCHED: dict[str, Place] = {
    "fetched, not stored": ("before", "jobs.store.inbox:SqlInbox.add"),
    "stored, not committed": ("after", "jobs.store.inbox:SqlInbox.add"),
    "committed, not confirmed": ("after", "bot.polling:Polling.poll"),
}
HANDLED: dict[str, Place] = {
    "message not committed": ("after", "jobs.store.outbox:SqlOutbox.put"),
    "handled, not marked": ("after", "aiogram:Dispatcher.feed_update"),
    "marked, not committed": ("after", "jobs.store.inbox:SqlInbox.mark_handled"),
    "handled": ("after", "bot.handling:UpdateHandling.handle_next"),
}
PRESSED: dict[str, Place] = {
    "not answered": ("before", "aiogram:Bot.answer_callback_query"),
    "answered": ("after", "aiogram:Bot.answer_callback_query"),
    "confirmation not used up": ("before", "jobs.store.confirmations:SqlConfirmations.mark_used"),
}
STOPPED: dict[str, Place] = {
    "not carried out": ("before", "jobs.killers.process:ProcessKiller.stop"),
    "carried out, outcome not written": ("after", "jobs.killers.process:ProcessKiller.stop"),
    "outcome not committed": ("after", "jobs.store.stops:SqlStops.save"),
    "outcome committed": ("after", "jobs.agent_stop:AgentStop._report"),
}
SENT: dict[str, Place] = {
    "not queued": ("after", "jobs.store.outbox:SqlOutbox.put"),
    "not leased": ("before", "jobs.store.outbox:SqlOutbox.lease"),
    "leased, not committed": ("after", "jobs.store.outbox:SqlOutbox.lease"),
    "leased, not sent": ("before", "bot.notifier:TelegramNotifier.send"),
    "noted": ("after", "jobs.alert_delivery:AlertDelivery.send_next"),
}
UNNOTED: dict[str, Place] = {
    "sent, not noted": ("after", "bot.notifier:TelegramNotifier.send"),
    "noted, not committed": ("after", "jobs.store.outbox:SqlOutbox.mark_sent"),
}
"""Where nobody knows any more that a message was sent."""


def crash_at(place: Place, at: int = 1) -> Crash:
    when, step = place
    return Crash(when=when, step=step, time=at)


def by_name(*places: dict[str, Place]) -> pytest.MarkDecorator:
    all_places = {name: place for some in places for name, place in some.items()}
    return pytest.mark.parametrize("place", all_places.values(), ids=all_places.keys())


# An order


@by_name(FETCHED, HANDLED, PRESSED, STOPPED)
async def test_an_order_survives_a_crash(stage: Stage, place: Place) -> None:
    """A pressed "Stop it" stops the agent once and is reported once, wherever on the way the bot was killed."""
    scene = await pressed(stage)
    await scene.dies(crash_at(place))
    await scene.goes_on()
    await scene.is_over()


@by_name(SENT)
async def test_a_report_survives_a_crash(stage: Stage, place: Place) -> None:
    """The chats are told once, though the bot was killed between sending the first message and the second."""
    scene = await pressed(stage)
    await scene.dies(crash_at(place, at=2))
    await scene.goes_on()
    await scene.is_over()


@by_name(UNNOTED)
async def test_a_report_is_rather_repeated_than_lost(stage: Stage, place: Place) -> None:
    """A bot killed before it could note that a message was sent sends it again, and acts no second time."""
    scene = await pressed(stage)
    await scene.dies(crash_at(place, at=2))
    await scene.goes_on()
    await scene.is_over(reports=2)


@pytest.mark.parametrize(("done", "reports"), [(False, 1), (True, 2)], ids=["not done", "done"])
async def test_a_report_on_its_way_is_sent_again(stage: Stage, *, done: bool, reports: int) -> None:
    """Killed while it waits for the answer, the bot does not know whether the message is in the chat: it sends it."""
    scene = await pressed(stage)
    held = stage.api.hold("sendMessage", done=done, chat=GROUP)
    bot = await stage.bot()
    await held.arrived(timeout=PATIENCE)
    bot.signal(signal.SIGKILL)
    assert await bot.exit_code(PATIENCE) == -signal.SIGKILL
    await scene.goes_on()
    await scene.is_over(reports=reports)
    assert len(said_in(stage, GROUP)) == reports


@pytest.mark.parametrize(
    ("place", "reports"),
    [
        (FETCHED["committed, not confirmed"], 1),
        (HANDLED["handled, not marked"], 1),
        (UNNOTED["sent, not noted"], 3),
    ],
    ids=["committed, not confirmed", "handled, not marked", "sent, not noted"],
)
async def test_crashes_in_a_row_do_no_more_harm(stage: Stage, place: Place, reports: int) -> None:
    """A bot that dies twice at the same place takes up the same update, or message, a third time."""
    scene = await pressed(stage)
    await scene.dies(crash_at(place))
    await scene.dies(crash_at(place))
    await scene.goes_on()
    await scene.is_over(reports=reports)


# A question


@by_name(FETCHED, HANDLED)
async def test_a_question_survives_a_crash(stage: Stage, place: Place) -> None:
    """/kill is answered with one question, wherever on the way the bot was killed."""
    scene = await commanded(stage)
    await scene.dies(crash_at(place))
    await scene.goes_on()
    [question] = stage.api.messages
    assert "Stop busy?" in question.text
    assert scene.database("SELECT count(*) FROM confirmation") == [(1,)]


async def test_of_a_question_that_was_repeated_the_newer_one_counts(stage: Stage) -> None:
    """A bot killed before it could note that a question was sent asks again, and takes the answer to that."""
    scene = await commanded(stage)
    await scene.dies(crash_at(UNNOTED["sent, not noted"]))
    await scene.goes_on()
    _, question = stage.api.messages
    stage.api.press(question, "Stop it")
    assert await ending_of(scene.agent) == -signal.SIGTERM
    await stage.shown(f"process {scene.agent.pid} has exited")


# A batch


@pytest.mark.parametrize(
    "crash",
    [
        crash_at(FETCHED["stored, not committed"]),
        crash_at(HANDLED["handled, not marked"], at=10),
        crash_at(("before", "jobs.store.inbox:SqlInbox.set_aside")),
        crash_at(HANDLED["handled"], at=20),
    ],
    ids=["stored", "handled", "poisoned", "soon done"],
)
async def test_a_batch_survives_a_crash(stage: Stage, crash: Crash) -> None:
    """Thirty commands that came at once, and one update that nobody can read: each is answered once, in order."""
    stage.watch(SOURCE, PROCESS_KILLER.format(name="stopper", grace=10))
    await pinned(stage.folder)
    names = [f"nobody-{number}." for number in range(30)]
    for name in names[:15]:
        stage.api.say(f"/agent {name}")
    stage.api.inject(ugly()["message without chat"].update)
    for name in names[15:]:
        stage.api.say(f"/agent {name}")
    bot = await stage.doomed_bot(crash)
    assert await bot.exit_code(PATIENCE) == -signal.SIGKILL
    await stage.bot()
    database = Database(stage)
    await database.handled()
    answers = [json.loads(body)["text"] for (body,) in database("SELECT body FROM outbox ORDER BY id")]
    assert [name for answer in answers for name in names if name in answer] == names
    states = database("SELECT state, count(*) FROM inbox GROUP BY state ORDER BY state")
    assert states == [("handled", 30), ("set_aside", 1)]


# Chance


@pytest.mark.prove
@pytest.mark.parametrize("seed", range(3))
async def test_deaths_at_any_moment_lose_nothing(stage: Stage, seed: int) -> None:
    """Twenty deaths while ten people have an agent each looked at and stopped: everyone gets what they asked for."""
    chance = random.Random(seed)  # noqa: S311 - dice
    scenes = [await known(stage, f"agent-{number}") for number in range(10)]
    people = [Person(scene=scene, user=USER + n, chance=chance) for n, scene in enumerate(scenes)]
    admins = ",".join(f"{person.user}" for person in people)
    async with asyncio.TaskGroup() as acting:
        for person in people:
            acting.create_task(person.act())
        for _ in range(20):
            bot = await stage.bot(ADMINS=admins)
            await asyncio.sleep(chance.uniform(0, 1))
            bot.signal(signal.SIGKILL)
            assert await bot.exit_code(PATIENCE) == -signal.SIGKILL
        await stage.bot(ADMINS=admins)
    database = Database(stage)
    await database.settled()
    for person in people:
        assert await ending_of(person.scene.agent) == -signal.SIGTERM
        person.has_all()
    stops = database("SELECT session_id, outcome FROM stop ORDER BY session_id")
    assert stops == [(number + 1, "stopped") for number in range(10)]
    assert database("SELECT DISTINCT state FROM outbox") == [("sent",)]
    assert database("SELECT DISTINCT state FROM inbox") == [("handled",)]

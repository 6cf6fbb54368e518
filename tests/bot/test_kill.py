"""A person stops an agent: the question, the second press, and everything that makes the second press void."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bot.console import Shown
from bot.settings import Chat
from tests.bot.room import AGENT, COLLEAGUE, GROUP, STRANGER, Agent, Room, SpawnAgent, open_room

ORDERED = "⏳ The stop was ordered; the report follows."
SPENT = "That button was used already."
FOREIGN = "Only who asked can confirm, and only where they asked. Nothing was done."
ELSEWHERE = "That button is not under the newest copy of its question. Nothing was done; press it there."
EXPIRED = "Too late, the question has expired. Nothing was done; ask again with /kill ID."
UNKNOWN = "That confirmation is not known. Ask again with /kill ID."


@pytest.fixture
def agent(spawn_agent: SpawnAgent) -> Agent:
    return spawn_agent()


async def asked(room: Room, agent: Agent) -> Shown:
    """Log a call of an agent, and let /kill ask whether to stop it."""
    room.call(pid=agent.pid)
    await room.scan()
    return await room.ask("/kill 1")


async def lives(room: Room, agent: Agent) -> bool:
    """Whether an agent has survived all that was ordered so far."""
    await room.stop_agents()
    return agent.poll() is None


async def heard(room: Room, text: str | None = None, *, messages: int = 1) -> list[Shown]:
    """Type, let the bot handle all it was told, and let so many of its messages through."""
    if text:
        room.console.type(text)
    while room.console.has_updates:
        await room.app.polling.poll(0)
    while await room.app.handling.handle_next():
        pass
    before = len(room.shown)
    for _ in range(messages):
        assert await room.app.delivery.send_next()
    return room.shown[before:]


# ── the question ──────────────────────────────────────────────────────────────────────────────────


async def test_kill_asks_before_anything_is_done(room: Room, agent: Agent) -> None:
    room.call(pid=agent.pid, sessionId="s-1")
    await room.scan()
    room.clock.go_on(12)
    for id_ in ("1", "#1", AGENT, "s-1"):
        question = await room.ask(f"/kill {id_}")
        assert question.text.splitlines() == [
            "Stop worker-3?",
            f"Source gateway, session 1, process {agent.pid}",
            "Last call at 12:00:00. The button works once, for 60 s.",
        ]
        assert list(question.buttons) == ["Stop it", "Cancel"]
    assert await lives(room, agent)


async def test_kill_under_an_alert_asks_as_well(room: Room, agent: Agent) -> None:
    [alert] = await room.thrash(pid=agent.pid)
    [question] = await room.press(alert, "Kill")
    assert question.text.startswith("Stop worker-3?")
    assert question.reply_to == alert.id
    assert await lives(room, agent)


async def test_kill_under_an_agent_asks_as_well(room: Room, agent: Agent) -> None:
    room.call(pid=agent.pid)
    await room.scan()
    card = await room.ask("/agent 1")
    [question] = await room.press(card, "Kill")
    assert question.text.startswith("Stop worker-3?")
    assert await lives(room, agent)


async def test_a_sub_agent_is_not_stopped_without_a_word_of_those_in_its_process(
    room: Room, agent: Agent, spawn_agent: SpawnAgent
) -> None:
    """Alert, question, report and /incidents name who has started it; the question names all in the same process."""
    told = "Sub-agent of claude-delegate, session 1, in one process with it: a signal ends both"
    room.call("claude-delegate", sessionId="main", pid=agent.pid)
    await room.scan()
    room.call("Plan", sessionId="s-2", parentId="main", pid=agent.pid)
    await room.scan()
    room.call("worker-4", pid=spawn_agent().pid)
    [alert] = [
        shown
        for shown in await room.thrash(agent="Explore", sessionId="s-3", parentId="main", pid=agent.pid)
        if "going round" in shown.text
    ]
    assert told in alert.text.splitlines()
    [question] = await room.press(alert, "Kill")
    assert question.text.splitlines()[2:4] == [told, f"Process {agent.pid} also runs sessions 1 and 2."]
    await room.press(question, "Stop it")
    report = (await room.stop_agents())[-1]
    assert agent.wait(10) == -15
    assert told in report.text.splitlines()
    assert "Explore of claude-delegate was stopped" in (await room.ask("/incidents")).text


async def test_every_question_has_a_nonce_of_its_own(room: Room, agent: Agent) -> None:
    first = await asked(room, agent)
    second = await room.ask("/kill 1")
    assert first.buttons["Stop it"] != second.buttons["Stop it"]


# ── the second press ──────────────────────────────────────────────────────────────────────────────


async def test_the_second_press_stops_the_process(room: Room, agent: Agent) -> None:
    question = await asked(room, agent)
    room.clock.go_on(60)
    [answer] = await room.press(question, "Stop it")
    assert (answer.id, answer.text, answer.buttons) == (question.id, ORDERED, {})
    [report] = await room.stop_agents()
    assert agent.wait(10) == -15
    assert report.text.startswith(f"🛑 Stopped: worker-3\nprocess {agent.pid} has exited")
    assert "Ordered by user 1" in report.text


async def test_a_stopped_agent_is_shown_as_one(room: Room, agent: Agent) -> None:
    """The list, the session and the question before another stop say so, until it makes a call again."""
    question = await asked(room, agent)
    await room.press(question, "Stop it")
    await room.stop_agents()
    assert "🛑 1 worker-3" in (await room.ask("/agents")).text
    assert "It was stopped and has made no call since." in (await room.ask("/agent 1")).text
    assert "It was stopped already and has made no call since." in (await room.ask("/kill 1")).text
    room.clock.go_on(30)
    room.call(pid=agent.pid)
    await room.scan()
    assert "🛑" not in (await room.ask("/agents")).text


async def test_a_stop_ordered_under_an_alert_is_about_its_incident(room: Room, agent: Agent) -> None:
    [alert] = await room.thrash(pid=agent.pid)
    [question] = await room.press(alert, "Kill")
    edited, answer = sorted(await room.press(question, "Stop it"), key=lambda shown: shown.id)
    assert answer.text == ORDERED
    assert edited.id == alert.id
    assert edited.text.startswith("⏳ worker-3 is being stopped")
    _, report = await room.stop_agents()
    assert report.reply_to == alert.id
    assert "Reason thrash_loop:7, ordered by user 1" in report.text


async def test_cancel_does_nothing_and_takes_the_buttons_away(room: Room, agent: Agent) -> None:
    question = await asked(room, agent)
    stop_it = dict(question.buttons)
    [answer] = await room.press(question, "Cancel")
    assert (answer.id, answer.text, answer.buttons) == (question.id, "Cancelled, nothing was done.", {})
    answer.buttons = stop_it
    [refusal] = await room.press(answer, "Stop it")
    assert SPENT in refusal.text
    assert await lives(room, agent)


# ── what makes it void ────────────────────────────────────────────────────────────────────────────


async def test_a_press_after_a_minute_is_too_late(room: Room, agent: Agent) -> None:
    question = await asked(room, agent)
    room.clock.go_on(60.1)
    [answer] = await room.press(question, "Stop it")
    assert (answer.id, answer.text, answer.buttons) == (question.id, EXPIRED, {})
    assert await lives(room, agent)


async def test_a_second_use_is_refused_and_leaves_the_first_as_it_was(room: Room, agent: Agent) -> None:
    """Two taps in a row must not end in a message that says nothing was done."""
    question = await asked(room, agent)
    again = replace(question)
    await room.press(question, "Stop it")
    [answer] = await room.press(again, "Stop it")
    assert SPENT in answer.text
    assert answer.reply_to == question.id
    assert question.text == ORDERED
    await room.stop_agents()
    assert agent.wait(10) == -15
    assert await room.stop_agents() == []


async def test_only_who_asked_can_confirm(tmp_path: Path, agent: Agent) -> None:
    async with open_room(tmp_path, chat=Chat(id=GROUP)) as room:
        room.call(pid=agent.pid)
        await room.scan()
        [question] = await room.type("/kill 1", chat=GROUP)
        [answer] = await room.press(question, "Stop it", person=COLLEAGUE)
        assert (answer.text, answer.reply_to) == (FOREIGN, question.id)
        assert "Stop it" in question.buttons
        assert await room.press(question, "Stop it", person=STRANGER) == []
        assert await lives(room, agent)
        [answer] = await room.press(question, "Stop it")
        assert answer.text == ORDERED


async def test_a_press_in_another_message_is_refused(room: Room, agent: Agent) -> None:
    question = await asked(room, agent)
    other = await room.ask("/help")
    other.buttons = question.buttons
    [answer] = await room.press(other, "Stop it")
    assert (answer.text, answer.reply_to) == (ELSEWHERE, other.id)
    assert await lives(room, agent)


async def test_a_press_in_another_chat_is_refused(tmp_path: Path, agent: Agent) -> None:
    async with open_room(tmp_path, chat=Chat(id=GROUP)) as room:
        question = await asked(room, agent)
        [answer] = await room.press(replace(question, chat=GROUP), "Stop it")
        assert (answer.text, answer.chat) == (FOREIGN, GROUP)
        assert await lives(room, agent)


async def test_an_agent_that_was_restarted_in_between_is_not_stopped(
    room: Room, agent: Agent, spawn_agent: SpawnAgent
) -> None:
    successor = spawn_agent()
    question = await asked(room, agent)
    room.call(pid=successor.pid)
    await room.scan()
    [answer] = await room.press(question, "Stop it")
    assert answer.text.startswith("Nothing was stopped: another process has taken this session over")
    assert await lives(room, agent)
    assert await lives(room, successor)


async def test_a_source_that_has_lost_its_killer_in_between_is_not_stopped(room: Room, agent: Agent) -> None:
    question = await asked(room, agent)
    await room.rewrite((room.folder / "loopwarden.toml").read_text().replace('killer = "stopper"', ""))
    [answer] = await room.press(question, "Stop it")
    assert answer.text == "Nothing was stopped: this source has no killer in the watch list."
    assert await lives(room, agent)


async def test_a_stop_that_is_under_way_is_not_ordered_twice(room: Room, agent: Agent) -> None:
    first = await asked(room, agent)
    second = await room.ask("/kill 1")
    await room.press(first, "Stop it")
    [answer] = await room.press(second, "Stop it")
    assert answer.text == "It is being stopped already."


async def test_a_made_up_nonce_is_refused(room: Room, agent: Agent) -> None:
    question = await asked(room, agent)
    question.buttons["Forged"] = re.sub(r"^c:[^:]+", "c:AAAAAAAAAAAAAAAA", question.buttons["Stop it"])
    [answer] = await room.press(question, "Forged")
    assert (answer.text, answer.reply_to) == (UNKNOWN, question.id)
    assert "Stop it" in question.buttons
    assert await lives(room, agent)


async def test_a_made_up_nonce_under_an_alert_leaves_the_alert_as_it_is(room: Room, agent: Agent) -> None:
    """As the button of a question whose row was deleted since: what the alert says and offers is worth more."""
    [alert] = await room.thrash(pid=agent.pid)
    before = replace(alert)
    alert.buttons = {**alert.buttons, "Forged": "c:AAAAAAAAAAAAAAAA:1"}
    [answer] = await room.press(alert, "Forged")
    assert (answer.text, answer.reply_to) == (UNKNOWN, alert.id)
    assert (alert.text, alert.edits) == (before.text, before.edits)
    assert await lives(room, agent)


async def test_the_minute_begins_when_the_question_arrives(room: Room, agent: Agent) -> None:
    """It may have waited for its chat; nobody could press it before."""
    room.call(pid=agent.pid)
    await room.scan()
    room.clock.go_on(12)
    assert await heard(room, "/kill 1", messages=0) == []
    room.clock.go_on(100)
    [question] = await heard(room)
    assert "Last call at 12:00:00." in question.text
    room.clock.go_on(60)
    [answer] = await room.press(question, "Stop it")
    assert answer.text == ORDERED
    await room.stop_agents()
    assert agent.wait(10) == -15


async def test_a_question_outlives_a_restart_of_the_bot(tmp_path: Path, agent: Agent) -> None:
    async with open_room(tmp_path) as room:
        question = await asked(room, agent)
    async with open_room(tmp_path, before=room) as again:
        [answer] = await again.press(question, "Stop it")
        assert answer.text == ORDERED
        await again.stop_agents()
    assert agent.wait(10) == -15


# ── before all else ───────────────────────────────────────────────────────────────────────────────


async def test_a_stop_overtakes_the_alerts_that_wait_for_the_same_chat(room: Room, agent: Agent) -> None:
    """After an hour without a network, or under a flood, whoever wants to stop an agent does not wait for the rest."""
    for number in range(5):
        room.call(f"other-{number}", times=8)
    room.call(times=8, pid=agent.pid)
    await room.run("thrash_scan")
    [question] = await heard(room, "/kill worker-3")
    assert question.text.startswith("Stop worker-3?")
    room.console.press(question, "Stop it")
    [answer] = await heard(room)
    assert (answer.id, answer.text) == (question.id, ORDERED)
    await room.run("agent_stop")
    alert, report = await heard(room, messages=2)
    assert alert.text.startswith("🛑 worker-3 was stopped")
    assert report.text.startswith("🛑 Stopped: worker-3")
    assert report.reply_to == alert.id
    others = await room.answers()
    assert len(others) == 5
    assert all("is going round in circles" in shown.text for shown in others)

"""What the chat is told of an agent that goes round in circles, and the buttons under it."""

from pathlib import Path

import pytest

from bot.console import Shown
from bot.settings import Chat, ThrashSettings
from jobs.thrash.policy import OnDetection
from tests.bot.room import GROUP, WATCHLIST, Agent, Room, SpawnAgent, open_room

STALE = "That button no longer means anything. /incidents and /agents show how things stand."


async def stopped(room: Room, agent: Agent) -> list[Shown]:
    """Let an agent go in circles until the bot has stopped it; return the edited alert and the report."""
    await room.thrash(2, pid=agent.pid)
    [edited] = await room.thrash(pid=agent.pid)
    assert "is being stopped" in edited.text
    return await room.stop_agents()


# ── the alert ─────────────────────────────────────────────────────────────────────────────────────


async def test_the_first_detection_is_one_alert_that_says_what_there_is_to_know(room: Room) -> None:
    [alert] = await room.thrash(tokens=850)
    assert alert.text.splitlines() == [
        "🔁 worker-3 is going round in circles",
        "Tool read_file, score 7",
        "7 calls in 6 s, 5\u202f950 tokens",
        "Source gateway, session 1, incident #1",
        "Scan 1 in a row; at 3 it is stopped.",
    ]
    assert list(alert.buttons) == ["Kill", "Details", "Snooze 15 m", "Snooze 1 h"]


async def test_an_alert_goes_to_the_first_admin_unless_a_chat_is_configured(
    room: Room, tmp_path: Path
) -> None:
    [alert] = await room.thrash()
    assert alert.chat == 1
    (tmp_path / "other").mkdir()
    async with open_room(tmp_path / "other", chat=Chat(id=GROUP)) as other:
        [alert] = await other.thrash()
    assert alert.chat == GROUP


async def test_an_agent_whose_tokens_are_not_known_gets_an_alert_without_them(room: Room) -> None:
    [alert] = await room.thrash()
    assert "7 calls in 6 s\n" in alert.text


async def test_two_agents_get_an_alert_each(room: Room) -> None:
    room.call("worker-1", times=8)
    room.call("worker-2", times=8)
    alerts = await room.scan()
    assert len({alert.id for alert in alerts}) == 2


async def test_the_same_message_is_edited_as_it_goes_on(room: Room) -> None:
    [alert] = await room.thrash()
    [edited] = await room.thrash()
    assert (edited.id, edited.edits) == (alert.id, 1)
    assert "15 calls in 1 min 6 s" in edited.text
    assert "Scan 2 in a row; at 3 it is stopped." in edited.text


async def test_a_scan_that_finds_nothing_new_says_nothing(room: Room) -> None:
    await room.thrash()
    assert await room.scan() == []


async def test_an_agent_that_recovers_is_edited_to_say_so(room: Room) -> None:
    [alert] = await room.thrash()
    for number in range(10):
        room.call(args={"chapter": str(number) * 20})
    [edited] = await room.scan()
    assert edited.id == alert.id
    assert edited.text.startswith("✅ worker-3 is no longer going round in circles")
    assert "It ended: its newest calls are different ones." in edited.text
    assert list(edited.buttons) == ["Details"]


async def test_an_agent_that_falls_silent_is_edited_to_say_so(room: Room) -> None:
    [alert] = await room.thrash()
    room.clock.go_on(601)
    [edited] = await room.scan()
    assert edited.id == alert.id
    assert "It ended: it has been quiet since." in edited.text


async def test_a_source_without_killer_offers_no_kill(tmp_path: Path) -> None:
    async with open_room(tmp_path, watchlist=WATCHLIST.replace('killer = "stopper"', "")) as room:
        [alert] = await room.thrash()
        assert "Scan 1 in a row. This source has no killer: it is only observed." in alert.text
        assert list(alert.buttons) == ["Details", "Snooze 15 m", "Snooze 1 h"]
        [answer] = await room.type("/kill 1")
        assert answer.text == "Nothing was stopped: this source has no killer in the watch list."
        assert "Kill" not in (await room.ask("/agent 1")).buttons


async def test_an_observed_agent_is_never_stopped(tmp_path: Path) -> None:
    async with open_room(tmp_path, thrash=ThrashSettings(on_detection=OnDetection.OBSERVE)) as room:
        [alert] = await room.thrash(5)
        assert "Scan 5 in a row. It is only observed." in alert.text
        assert await room.stop_agents() == []


async def test_a_message_deleted_in_the_chat_is_sent_anew_and_edited_from_then_on(room: Room) -> None:
    [alert] = await room.thrash()
    del room.console.messages[alert.id]
    [anew] = await room.thrash()
    assert anew.id != alert.id
    [edited] = await room.thrash()
    assert (edited.id, edited.edits) == (anew.id, 1)


# ── the question ──────────────────────────────────────────────────────────────────────────────────


async def test_under_ask_the_chat_is_asked_before_an_agent_is_stopped(
    tmp_path: Path, spawn_agent: SpawnAgent
) -> None:
    agent = spawn_agent()
    async with open_room(tmp_path, thrash=ThrashSettings(on_detection=OnDetection.ASK)) as room:
        [alert] = await room.thrash(pid=agent.pid)
        assert "Scan 1 in a row; at 3 you are asked." in alert.text
        await room.thrash(pid=agent.pid)
        # Whoever is asked has little time.
        question, edited = await room.thrash(pid=agent.pid)
        assert edited.id == alert.id
        assert question.text.splitlines() == [
            "❓ worker-3 is going round in circles. Stop it?",
            "Without an answer it is stopped at 12:08:00 if it goes on.",
            "Source gateway, session 1, incident #1",
        ]
        assert "Kill" in question.buttons
        shown = await room.thrash(5, pid=agent.pid)
        [closed] = [message for message in shown if message.id == question.id]
        assert closed.text.startswith("❔ worker-3 was asked about; the question is closed.")
        assert closed.buttons == {}
        _, report = await room.stop_agents()
    assert f"process {agent.pid} has exited" in report.text


# ── the stop ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_stop_is_a_new_message_that_answers_the_alert(room: Room, spawn_agent: SpawnAgent) -> None:
    agent = spawn_agent()
    alert, report = await stopped(room, agent)
    assert agent.wait(10) == -15
    assert report.reply_to == alert.id
    assert report.id != alert.id
    assert alert.text.startswith("🛑 worker-3 was stopped")
    assert list(alert.buttons) == ["Details"]
    title, detail, damage, reason, source = report.text.splitlines()
    assert title == "🛑 Stopped: worker-3"
    assert detail.startswith(f"process {agent.pid} has exited, after SIGTERM")
    assert damage == f"In circles: {alert.text.splitlines()[2]}."
    assert reason == "Reason thrash_loop:10, ordered by the scan"
    assert source == "Source gateway, session 1"


async def test_a_stop_that_fails_is_told_with_what_was_in_the_way(room: Room) -> None:
    await room.thrash(3)
    alert, report = await room.stop_agents()
    assert alert.text.startswith("🚨 worker-3 could not be stopped")
    assert "Kill" in alert.buttons
    assert report.text.startswith("🚨 The stop was refused: worker-3\nno pid known")
    status = await room.ask("/status")
    assert status.text.startswith("🔴")
    assert "Agents that could not be stopped: 1" in status.text
    assert report.reply_to == alert.id


async def test_an_agent_that_goes_on_after_its_stop_is_told_and_tried_harder_once(
    room: Room, spawn_agent: SpawnAgent
) -> None:
    agent = spawn_agent()
    alert, _ = await stopped(room, agent)
    room.clock.go_on(10)
    room.call(pid=agent.pid, times=4)
    await room.scan()
    shown = await room.stop_agents()
    edited, told = (message for message in shown if "is still running" in message.text)
    assert edited.id == told.reply_to == alert.id
    assert "It made calls after the stop of 12:03:00." in told.text
    assert "One more attempt follows now." in told.text
    shown = await room.stop_agents()
    assert any("second attempt" in message.text for message in shown)
    room.clock.go_on(10)
    room.call(pid=agent.pid, times=4)
    await room.scan()
    shown = await room.stop_agents()
    assert any("please stop it by hand" in message.text for message in shown)
    assert await room.stop_agents() == []


async def test_a_process_that_survives_its_stop_is_named(tmp_path: Path, spawn_agent: SpawnAgent) -> None:
    watchlist = WATCHLIST.replace('match = "sleep 1000"', 'match = "no such command line"')
    agent = spawn_agent()
    async with open_room(tmp_path, watchlist=watchlist) as room:
        await room.thrash(3, pid=agent.pid)
        await room.stop_agents()
        await room.rewrite(WATCHLIST)
        await room.scan()
        room.clock.go_on(6)
        shown = await room.stop_agents()
    assert any(f"Process {agent.pid} still lives." in message.text for message in shown)


async def test_a_dry_run_says_what_would_have_been_stopped(tmp_path: Path) -> None:
    head, _, _ = WATCHLIST.partition("kind =")
    async with open_room(tmp_path, watchlist=f'{head}kind = "dry_run"\n') as room:
        [alert] = await room.thrash()
        assert "at 3 a dry run says so, and nothing is stopped." in alert.text
        assert "A dry run: nothing is really stopped." in (await room.press(alert, "Kill"))[0].text
        [alert] = await room.thrash(2)
        assert alert.text.startswith("🧪 worker-3 would have been stopped (dry run)")
        alert, report = await room.stop_agents()
    assert alert.text.startswith("🧪 worker-3 would have been stopped (dry run)")
    assert report.text.startswith("🧪 Dry run: worker-3")


async def test_a_report_that_had_to_wait_with_its_alert_still_answers_it(
    room: Room, spawn_agent: SpawnAgent
) -> None:
    """As after an hour without a network: everything is sent at once, and in order."""
    agent = spawn_agent()
    for _ in range(3):
        room.clock.go_on(60)
        room.call(times=8, pid=agent.pid)
        await room.run("thrash_scan")
    await room.run("agent_stop")
    alert, report = await room.answers()
    assert "was stopped" in alert.text
    assert f"process {agent.pid} has exited" in report.text
    assert report.reply_to == alert.id


# ── snooze ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("label", "until"), [("Snooze 15 m", "12:16:00"), ("Snooze 1 h", "13:01:00")])
async def test_snooze_is_shown_in_the_alert_itself(room: Room, label: str, until: str) -> None:
    [alert] = await room.thrash()
    [edited] = await room.press(alert, label)
    assert edited.id == alert.id
    assert edited.text.splitlines()[-1] == f"🔕 snoozed until {until}"


async def test_a_snoozed_incident_is_not_edited_while_it_only_goes_on(room: Room) -> None:
    [alert] = await room.thrash()
    await room.press(alert, "Snooze 15 m")
    assert await room.thrash() == []


async def test_snooze_never_prevents_a_stop(room: Room, spawn_agent: SpawnAgent) -> None:
    agent = spawn_agent()
    [alert] = await room.thrash(pid=agent.pid)
    await room.press(alert, "Snooze 1 h")
    await room.thrash(2, pid=agent.pid)
    _, report = await room.stop_agents()
    assert f"process {agent.pid} has exited" in report.text


async def test_snooze_on_an_incident_that_is_over_says_so(room: Room) -> None:
    [alert] = await room.thrash()
    old = dict(alert.buttons)
    room.clock.go_on(601)
    await room.scan()
    alert.buttons = old
    [answer] = await room.press(alert, "Snooze 1 h")
    assert answer.text == STALE


# ── details and stale buttons ─────────────────────────────────────────────────────────────────────


async def test_details_shows_the_last_calls(room: Room) -> None:
    [alert] = await room.thrash()
    [details] = await room.press(alert, "Details")
    assert details.reply_to == alert.id
    head, *calls = details.text.splitlines()
    assert head == "Incident #1: last calls of worker-3"
    assert calls[0] == '▫️ 12:00:53 read_file {"path":"notes/todo.md"}'
    assert calls[1:] == [f'🔁 12:00:{54 + n} read_file {{"path":"notes/todo.md"}}' for n in range(6)] + [
        '🔁 12:01:00 read_file {"path":"notes/todo.md"}'
    ]


async def test_details_still_works_when_the_incident_is_over(room: Room) -> None:
    [alert] = await room.thrash()
    room.clock.go_on(601)
    await room.scan()
    [details] = await room.press(alert, "Details")
    assert "last calls of worker-3" in details.text


async def test_a_button_that_means_nothing_is_answered(room: Room) -> None:
    """From a message of long ago, another release or another database."""
    [alert] = await room.thrash()
    unknown = ("i:more:99", "i:kill:99", "i:z15:99", "k:99")
    for data in (*unknown, "i:what:1", "i:more:", "k:x", "c:x", "", "🙂", "of another release"):
        alert.buttons["Old"] = data
        [answer] = await room.press(alert, "Old")
        assert answer.text == STALE
        assert answer.reply_to == alert.id


async def test_kill_on_an_incident_that_is_over_says_so(room: Room) -> None:
    [alert] = await room.thrash()
    old = dict(alert.buttons)
    room.clock.go_on(601)
    await room.scan()
    alert.buttons = old
    [answer] = await room.press(alert, "Kill")
    assert answer.text == STALE

"""Commands, typed: what the bot answers."""

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from bot.commands import COMMANDS
from bot.console import Shown
from bot.settings import ThrashSettings
from jobs.alert.outgoing import Outgoing
from jobs.ports import ChatState
from jobs.store.schema import FILE_NAME
from jobs.thrash.policy import OnDetection
from tests.bot.room import AGENT, COLLEAGUE, WATCHLIST, Room, open_room

DAY = 86_400
TAKES_A_SESSION = ["agent", "kill"]


def lines(shown: Shown) -> list[str]:
    return shown.text.splitlines()


# ── how the bot is found out about ────────────────────────────────────────────────────────────────


async def test_start_says_what_the_bot_does_and_how_to_go_on(room: Room) -> None:
    answer = await room.ask("/start")
    assert "stops those that go round in circles" in answer.text
    assert "/help" in answer.text


async def test_an_answer_is_a_reply_to_what_was_typed(room: Room) -> None:
    await room.ask("/start")
    answer = await room.ask("/help")
    assert answer.reply_to == answer.id - 1


async def test_help_lists_every_command_with_what_it_does(room: Room) -> None:
    answer = await room.ask("/help")
    for command in COMMANDS:
        assert f"/{command.name}" in answer.text
        assert command.does in answer.text


async def test_every_command_of_the_menu_is_answered_as_a_command(room: Room) -> None:
    for command in COMMANDS:
        answers = await room.type(f"/{command.name}")
        assert answers
        assert all("no command of mine" not in answer.text for answer in answers)


async def test_what_is_no_command_is_answered_in_a_private_chat(room: Room) -> None:
    for text in ("/stopp", "/", "good morning"):
        answer = await room.ask(text)
        assert answer.text == "That is no command of mine. /help lists them."


async def test_a_command_may_name_the_bot(room: Room) -> None:
    answer = await room.ask("/help@loopwarden_bot")
    assert "Commands" in answer.text


# ── /agents ───────────────────────────────────────────────────────────────────────────────────────


async def test_agents_says_so_when_none_was_seen(room: Room) -> None:
    answer = await room.ask("/agents")
    assert answer.text == "No agent has made a call in the last 24 hours."


async def test_agents_lists_who_was_seen_how_long_ago_and_what_it_used(room: Room) -> None:
    room.call("worker-1", times=2, tokens=850)
    await room.scan()
    room.clock.go_on(125)
    room.call("worker-2")
    await room.scan()
    answer = await room.ask("/agents")
    assert lines(answer)[1:3] == [
        "2 worker-2 in gateway: 0 s ago, 1 call",
        "1 worker-1 in gateway: 2 min 5 s ago, 2 calls, 1\u202f700 tokens",
    ]


async def test_agents_marks_who_is_on_a_streak(room: Room) -> None:
    await room.thrash(2)
    answer = await room.ask("/agents")
    assert lines(answer)[1].endswith("🔁 streak 2")


async def test_agents_forgets_after_a_day(room: Room) -> None:
    room.call()
    await room.scan()
    room.clock.go_on(24 * 3600 + 1)
    answer = await room.ask("/agents")
    assert "No agent" in answer.text


async def test_agents_shows_the_newest_twenty_and_how_many_there_are_besides(room: Room) -> None:
    for number in range(23):
        room.call(f"worker-{number}")
    await room.scan()
    answer = await room.ask("/agents")
    assert sum(line.endswith("1 call") for line in lines(answer)) == 20
    assert "… and 3 more" in answer.text


# ── /agent ID ─────────────────────────────────────────────────────────────────────────────────────


async def test_agent_shows_a_session_its_process_and_its_last_calls(room: Room) -> None:
    room.call(pid=4321, sessionId="s-1", parentId="main", tokens=10)
    room.call(is_error=True, args={"path": "notes/other.md"}, sessionId="s-1")
    await room.scan()
    answer = await room.ask("/agent 1")
    assert lines(answer) == [
        "worker-3, session 1",
        "Source gateway, own id s-1",
        "Started by main",
        "Process 4321, first call 12:00:00",
        "2 calls, 1 error, tokens 10",
        "Streak 0 of 3",
        "Last calls",
        '▫️ 12:00:00 read_file {"path":"notes/todo.md"}',
        '▫️❌ 12:00:00 read_file {"path":"notes/other.md"}',
    ]


async def test_a_sub_agent_is_shown_with_the_session_that_has_started_it(room: Room) -> None:
    """By its short id and its name, as soon as it has been seen; a session is nobody's sub-agent by its own word."""
    room.call("claude-delegate", sessionId="main", parentId="main")
    room.call("Explore", sessionId="s-2", parentId="main")
    await room.scan()
    assert "Started by session 1, claude-delegate" in lines(await room.ask("/agent 2"))
    assert "Started by" not in (await room.ask("/agent 1")).text
    assert sorted(lines(await room.ask("/agents"))[1:3]) == [
        "1 claude-delegate in gateway: 0 s ago, 1 call",
        "2 Explore of 1 in gateway: 0 s ago, 1 call",
    ]


async def test_agent_says_what_is_not_known(room: Room) -> None:
    room.call()
    await room.scan()
    answer = await room.ask("/agent 1")
    assert "Process unknown" in answer.text
    assert "tokens unknown" in answer.text


async def test_a_call_of_another_day_is_shown_with_its_date(room: Room) -> None:
    room.call()
    await room.scan()
    room.clock.go_on(12 * 3600)
    answer = await room.ask("/agent 1")
    assert "first call 2100-05-01 12:00" in answer.text


async def test_calls_that_repeat_are_marked(room: Room) -> None:
    room.call(args={"path": "a chapter of its own"})
    room.call(times=2)
    await room.scan()
    answer = await room.ask("/agent 1")
    assert [line[0] for line in lines(answer)[-3:]] == ["▫", "▫", "🔁"]


async def test_the_newest_call_is_shown_however_many_are_scored(tmp_path: Path) -> None:
    """A message holds few of a hundred long calls; the newest are the ones that matter."""
    async with open_room(tmp_path, thrash=ThrashSettings(last=100)) as room:
        for number in range(100):
            room.call(tool="t" * 32, args={"number": number, "padding": "x" * 200})
        await room.scan()
        answer = await room.ask("/agent 1")
    assert '{"number":99' in lines(answer)[-1]


async def test_a_session_is_found_by_its_id_its_agent_and_its_own_name(room: Room) -> None:
    room.call(sessionId="s-1")
    await room.scan()
    for id_ in ("1", "#1", AGENT, "s-1", f"  {AGENT}  "):
        answer = await room.ask(f"/agent {id_}")
        assert lines(answer)[0] == "worker-3, session 1"


async def test_an_id_goes_before_a_name_that_looks_like_one(room: Room) -> None:
    room.call("2")
    await room.scan()
    room.call("worker")
    await room.scan()
    assert lines(await room.ask("/agent 2"))[0] == "worker, session 2"
    assert lines(await room.ask("/agent 1"))[0] == "2, session 1"


@pytest.mark.parametrize("command", TAKES_A_SESSION)
async def test_a_session_that_is_not_known_is_said_not_to_be(room: Room, command: str) -> None:
    room.call()
    await room.scan()
    for id_ in ("7", "#7", "nobody", "9" * 30, "²", "1; DROP TABLE session"):
        answer = await room.ask(f"/{command} {id_}")
        assert answer.text == f"No session {id_}. /agents lists them."
        assert not answer.buttons


async def test_a_missing_id_is_asked_for(room: Room) -> None:
    for command in TAKES_A_SESSION:
        answer = await room.ask(f"/{command}")
        assert answer.text == f"Which one? /{command} ID, with an id from /agents."


async def test_a_name_of_several_sessions_is_answered_with_their_ids(room: Room) -> None:
    room.call(sessionId="s-1")
    room.call(sessionId="s-2")
    await room.scan()
    for command in TAKES_A_SESSION:
        answer = await room.ask(f"/{command} {AGENT}")
        assert "Several sessions look like worker-3" in answer.text
        assert [line.split()[0] for line in lines(answer)[1:]] == ["1", "2"]
        assert not answer.buttons


# ── /status ───────────────────────────────────────────────────────────────────────────────────────


async def test_status_says_that_all_is_well(room: Room) -> None:
    room.call("worker-1")
    room.call("worker-2")
    await room.scan()
    room.clock.go_on(42)
    answer = await room.ask("/status")
    assert lines(answer) == [
        "🟢 Loopwarden, up 42 s",
        "Last scan 42 s ago (12:00:00), took 0.00 s",
        "Source gateway: 1 file, 2 sessions, on detection stop",
        "Incidents open: 0",
        "Messages waiting: 0, given up in 24 h: 0",
    ]


async def test_status_counts_what_was_given_up_in_the_last_day(room: Room) -> None:
    async with room.app.handling.desk.store.transaction() as tables:
        outgoing = Outgoing(kind="screen", body=b"{}", chat=f"{COLLEAGUE.id}")
        await tables.outbox.park(await tables.outbox.put(outgoing, room.clock.time), "no")
    room.clock.go_on(DAY)
    assert "given up in 24 h: 1" in (await room.ask("/status")).text
    room.clock.go_on(1)
    assert "given up in 24 h: 0" in (await room.ask("/status")).text


async def test_status_names_the_chats_that_have_to_wait_for_long(room: Room) -> None:
    """Not those that only wait for their pace, which may take a minute."""
    held_at = room.clock.time
    async with room.app.handling.desk.store.transaction() as tables:
        for chat, seconds in ((COLLEAGUE.id, 3600.0), (-100777, 60.0)):
            await tables.chats.save(ChatState(id=chat, held_at=held_at, free_at=held_at + seconds))
    waits = f"⏳ Chat {COLLEAGUE.id} is written to again at 13:00:00: Telegram wants it so, or fails"
    answer = await room.ask("/status")
    assert [line for line in lines(answer) if "is written to again" in line] == [waits]
    room.clock.go_on(3600)
    assert "is written to again" not in (await room.ask("/status")).text


async def test_status_before_the_first_scan_says_so(room: Room) -> None:
    answer = await room.ask("/status")
    assert "The first scan is under way." in answer.text


async def test_names_that_only_look_the_same_are_told_apart_by_their_ids(room: Room) -> None:
    """An agent cannot hide behind another one's name."""
    for agent in ("main", "ma\u200bin", "\uff4dain"):
        room.call(agentId=agent)
    await room.scan()
    answer = await room.ask("/kill main")
    assert answer.text.startswith("Several sessions look like main. Use the id:")
    assert len(answer.text.splitlines()) == 4


async def test_status_counts_the_lines_that_cannot_be_read(room: Room) -> None:
    room.log("{not JSON", json.dumps({"tool": "of nobody"}))
    room.call()
    await room.scan()
    answer = await room.ask("/status")
    assert "Source gateway: 1 file, 1 session, 2 unreadable lines, on detection stop" in answer.text
    assert "⚠️ calls.jsonl: 2 unreadable lines" in answer.text


async def test_status_names_the_files_that_cannot_be_read(room: Room) -> None:
    (room.folder / "calls.jsonl").mkdir()
    await room.scan()
    answer = await room.ask("/status")
    assert answer.text.startswith("🟡")
    assert "calls.jsonl is not read: it is a directory, not a regular file." in answer.text


async def test_status_counts_open_incidents_but_not_those_being_stopped(room: Room) -> None:
    await room.thrash(2)
    assert "Incidents open: 1" in (await room.ask("/status")).text
    await room.thrash()
    assert "Incidents open: 0" in (await room.ask("/status")).text


async def test_status_says_that_a_source_without_killer_is_only_observed(tmp_path: Path) -> None:
    async with open_room(tmp_path, watchlist=WATCHLIST.replace('killer = "stopper"', "")) as room:
        answer = await room.ask("/status")
    assert "Source gateway: 0 files, 0 sessions, no killer, observed" in answer.text


async def test_status_says_that_a_killer_is_not_in_force(room: Room, tmp_path: Path) -> None:
    """Its source waits with it."""
    (tmp_path / "loopwarden.toml").write_text(WATCHLIST.replace("stopper", "other"))
    shown = await room.look_at_watchlist()
    [source] = [each for each in shown if "differs: source gateway" in each.text]
    assert "killer other is not in force: until it is, this source is only observed" in source.text
    await room.press(source, "Approve")
    await room.look_at_watchlist()
    answer = await room.ask("/status")
    assert "Source gateway: 0 files, 0 sessions, killer other is not in force, observed" in answer.text


@pytest.mark.parametrize(("in_list", "in_force"), [("", "ask"), ('on_detection = "observe"', "observe")])
async def test_status_says_what_a_detection_leads_to(tmp_path: Path, in_list: str, in_force: str) -> None:
    """The watch list says it for a source, else the settings do."""
    watchlist = WATCHLIST.replace('killer = "stopper"', f'killer = "stopper"\n{in_list}')
    thrash = ThrashSettings(on_detection=OnDetection.ASK)
    async with open_room(tmp_path, watchlist=watchlist, thrash=thrash) as room:
        answer = await room.ask("/status")
    assert f"on detection {in_force}" in answer.text


# ── /incidents ────────────────────────────────────────────────────────────────────────────────────


async def test_incidents_says_so_when_there_was_none(room: Room) -> None:
    answer = await room.ask("/incidents")
    assert answer.text == "No incidents so far."


async def test_incidents_lists_the_latest_first_and_how_they_ended(room: Room) -> None:
    await room.thrash(agent="worker-1")
    room.clock.go_on(1)
    room.call("worker-1", times=6, tool="search", args={"query": "another"})
    for number in range(10):
        room.call("worker-1", args={"chapter": str(number) * 20})
    await room.scan()
    await room.thrash(agent="worker-2", tokens=100)
    answer = await room.ask("/incidents")
    assert lines(answer)[1:] == [
        "🔁 #2 12:02:01 worker-2 is going round in circles: read_file, 7 calls, 700 tokens",
        "✅ #1 12:01:00 worker-1 is no longer going round in circles: read_file, 7 calls",
    ]


# ── what goes wrong ───────────────────────────────────────────────────────────────────────────────


def spoil_the_sessions(room: Room) -> None:
    """Leave in the database what no release of the bot writes."""
    with closing(sqlite3.connect(room.folder / "data" / FILE_NAME)) as connection, connection:
        connection.execute("UPDATE session SET memory = 'spoilt'")


async def test_a_handler_that_fails_says_so(room: Room, caplog: pytest.LogCaptureFixture) -> None:
    room.call()
    await room.scan()
    spoil_the_sessions(room)
    answer = await room.ask("/agents")
    assert answer.text.startswith("⚠️ That failed; the log says why.")
    assert "a handler failed" in caplog.text


async def test_a_button_whose_handler_fails_says_so(room: Room) -> None:
    [alert] = await room.thrash()
    spoil_the_sessions(room)
    [answer] = await room.press(alert, "Details")
    assert answer.text.startswith("⚠️ That failed; the log says why.")
    assert answer.reply_to == alert.id


async def test_a_job_that_fails_again_and_again_is_told_once_and_shows_in_status(room: Room) -> None:
    room.call()
    await room.scan()
    spoil_the_sessions(room)
    room.call()
    assert await room.scan() == []
    assert "The scan has failed 1 time in a row" in (await room.ask("/status")).text
    told = [shown for _ in range(4) for shown in await room.scan()]
    assert [shown.text.splitlines()[0] for shown in told] == ["⚠️ The job thrash_scan fails again and again"]
    status = await room.ask("/status")
    assert status.text.startswith("🔴")
    assert "The scan has failed 5 times in a row: DecodeError: JSON is malformed" in status.text


async def test_status_names_another_job_that_fails(room: Room) -> None:
    await room.thrash(3)
    with closing(sqlite3.connect(room.folder / "data" / FILE_NAME)) as connection, connection:
        connection.execute("UPDATE stop SET target = 'spoilt'")
    await room.stop_agents()
    status = await room.ask("/status")
    assert status.text.startswith("🔴")
    assert "Job agent_stop has failed 1 time in a row" in status.text

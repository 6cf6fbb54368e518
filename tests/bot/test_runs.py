"""Runs in the chat: commands typed and buttons pressed, over real outputs."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from bot.console import Shown
from bot.settings import Chat
from jobs.verification.history import Report, Trigger
from tests.bot.room import COLLEAGUE, GROUP, STRANGER, WATCHLIST, Room, open_room

NIGHTLY = """
[workflows.nightly]
output = "report.json"
required = ["status", "result", "timestamp"]
timestamp = "timestamp"
status = { field = "status" }
"""
HOURLY = """
[workflows.hourly]
output = "hourly.json"
every = "1h"
grace = "10m"
"""
DUE = NIGHTLY + 'expect = "0 2 * * *"\ngrace = "30m"\n'
HOUR = 3600


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    """A bot that watches two workflows and has seen none of their outputs."""
    async with open_room(tmp_path, watchlist=WATCHLIST + NIGHTLY + HOURLY) as room:
        await room.run("run_watch")
        yield room


def lines(shown: Shown) -> list[str]:
    return shown.text.splitlines()


async def new_run(room: Room, **fields: Any) -> list[Shown]:
    """Let a program report another run of nightly, which has left a good output but for `fields`."""
    room.clock.go_on(60)
    room.leave(**fields)
    report = Report(workflow="nightly", by=Trigger.REPORT, at=room.clock.time)
    async with room.app.handling.desk.store.transaction() as tables:
        await tables.reports.add(report)
    return await room.verify()


async def some_runs(room: Room, count: int) -> None:
    """Runs 1 to `count` of nightly; every third one fails."""
    for number in range(1, count + 1):
        await new_run(room, **({"result": None} if number % 3 == 0 else {}))


# ── the alert ─────────────────────────────────────────────────────────────────────────────────────


async def test_a_failing_run_is_one_alert_that_says_what_there_is_to_know(room: Room) -> None:
    [alert] = await new_run(room, timestamp=room.clock.time - 3 * HOUR, said="completed")
    assert lines(alert) == [
        "❌ nightly failed: fresh",
        "timestamp is 3 h 1 min old (2100-05-01 09:00:00 UTC), expected at most 30 min",
        "Yet the run says completed",
        f"Output {room.folder}/report.json",
        "Run #1 at 12:01:00",
    ]
    assert list(alert.buttons) == ["Recheck", "History", "Silence 1 h", "Silence 24 h"]


async def test_a_run_that_delivers_is_no_news(room: Room) -> None:
    assert await new_run(room) == []


async def test_a_run_that_says_it_failed_is_an_alert_of_its_own_kind(room: Room) -> None:
    [alert] = await new_run(room, status="failed")
    assert lines(alert)[:2] == [
        "🟠 nightly says it failed",
        "The output is valid; it is the run itself that says so.",
    ]


async def test_failures_in_a_row_are_counted_and_a_good_run_says_so_in_the_alert(room: Room) -> None:
    await new_run(room, result=None)
    [alert] = await new_run(room, result="n/a")
    assert lines(alert)[-1] == "Run #2 at 12:02:00, 2nd failure in a row"
    [edited] = await new_run(room)
    assert edited.id == alert.id
    assert lines(edited) == [
        "✅ nightly delivers again, run #3",
        "Run #2 at 12:02:00: failed: fields, 2nd failure in a row",
    ]
    assert list(edited.buttons) == ["History"]


async def test_a_run_that_is_missing_is_told_once_and_closed_when_it_comes(tmp_path: Path) -> None:
    async with open_room(tmp_path, watchlist=WATCHLIST + DUE) as room:
        await room.run("run_watch")
        room.clock.go_on(14 * HOUR + 1801)
        [alert] = await room.beat("run_watch")
        assert lines(alert) == [
            "⏰ nightly is missing",
            "It was due at 02:00:00. Nothing had come by 02:30:01.",
            "Run #1 at 02:30:01",
        ]
        room.clock.go_on(60)
        assert await room.beat("run_watch") == []
        room.leave()
        edited, _ = await room.check()
        assert (edited.id, lines(edited)) == (
            alert.id,
            ["✅ nightly delivers again, run #1", "Verified again at 02:31:01; it was due at 02:00:00."],
        )


@pytest.mark.parametrize("has_older", [False, True])
async def test_a_missing_run_that_is_asked_for_is_still_missing(tmp_path: Path, *, has_older: bool) -> None:
    """What the run before had left is not its output, however long that counts as fresh."""
    lenient = DUE + 'max_age = "48h"\n'
    async with open_room(tmp_path, watchlist=WATCHLIST + lenient) as room:
        if has_older:
            room.leave()
        await room.run("run_watch")
        room.clock.go_on(14 * HOUR + 1801)
        [alert] = await room.beat("run_watch")
        room.clock.go_on(HOUR)
        await room.press(alert, "Recheck")
        edited, answer = await room.verify()
        assert edited.id == alert.id
        assert lines(edited)[:2] == [
            "⏰ nightly is missing",
            "It was due at 02:00:00. Nothing had come by 03:30:01.",
        ]
        assert lines(answer) == ["⏰ nightly is missing", "Run #1 at 03:30:01"]
        room.clock.go_on(60)
        [_, answer] = await room.check()
        assert lines(answer)[0] == "⏰ nightly is missing"
        room.leave()
        [_, answer] = await room.check()
        assert lines(answer)[0] == "✅ nightly passed"


# ── its buttons ───────────────────────────────────────────────────────────────────────────────────


async def test_recheck_edits_the_alert_and_answers_with_every_check(room: Room) -> None:
    [alert] = await new_run(room, result="n/a")
    room.leave()
    [checking] = await room.press(alert, "Recheck")
    assert (checking.text, checking.reply_to) == ("⏳ Checking nightly, run #1 …", alert.id)
    edited, answer = await room.verify()
    assert edited.id == alert.id
    assert lines(edited) == ["✅ nightly delivers again, run #1", "Verified again at 12:01:00."]
    assert answer.reply_to == alert.id
    assert lines(answer)[0] == "✅ nightly passed"


async def test_recheck_of_the_same_output_judges_its_age_as_before(room: Room) -> None:
    """Else every output would be too old when a person looks."""
    [alert] = await new_run(room, result="n/a")
    room.clock.go_on(5 * HOUR)
    await room.press(alert, "Recheck")
    [_, answer] = await room.verify()
    assert "❌ fields" in answer.text
    assert "Its age was judged as of 12:01:00, when it had come." in answer.text


async def test_two_taps_on_recheck_get_one_answer(room: Room) -> None:
    [alert] = await new_run(room, result="n/a")
    await room.press(alert, "Recheck")
    await room.press(alert, "Recheck")
    assert sum("❌ fields" in shown.text for shown in await room.verify()) == 1


async def test_history_under_an_alert_shows_the_runs_of_its_workflow(room: Room) -> None:
    await room.check("hourly")
    [alert] = await new_run(room, result="n/a")
    [page] = await room.press(alert, "History")
    assert page.reply_to == alert.id
    assert lines(page)[:2] == ["History of nightly", "❌ #2 failed: fields, 12:01:00"]


@pytest.mark.parametrize(("label", "hours"), [("Silence 1 h", 1), ("Silence 24 h", 24)])
async def test_a_silenced_workflow_says_so_and_is_not_told_of_until_then(
    room: Room, label: str, hours: int
) -> None:
    [alert] = await new_run(room, result="n/a")
    [edited] = await room.press(alert, label)
    assert edited.id == alert.id
    assert "🔕 silenced until" in lines(edited)[-1]
    room.clock.go_on(hours * HOUR - 61)
    assert await new_run(room, result="n/a") == []
    [alert] = await new_run(room, result="n/a")
    assert lines(alert)[-1].endswith("3rd failure in a row")


async def test_silence_leaves_an_alert_resolved_that_was_resolved_meanwhile(room: Room) -> None:
    """Whoever pressed had the message before them as it was."""
    [alert] = await new_run(room, result="n/a")
    pressed = dict(alert.buttons)
    [resolved] = await new_run(room)
    resolved.buttons = pressed
    [edited] = await room.press(resolved, "Silence 1 h")
    assert lines(edited) == [
        "✅ nightly delivers again, run #2",
        "Run #1 at 12:01:00: failed: fields",
        "🔕 silenced until 13:02:00",
    ]


async def test_silence_leaves_a_run_good_that_was_verified_again_meanwhile(room: Room) -> None:
    [alert] = await new_run(room, result="n/a")
    pressed = dict(alert.buttons)
    room.leave()
    await room.press(alert, "Recheck")
    [good, _] = await room.verify()
    good.buttons = pressed
    [edited] = await room.press(good, "Silence 1 h")
    assert lines(edited)[0] == "✅ nightly delivers again, run #1"


async def test_silence_under_what_the_run_said_itself_leaves_it_as_it_is(room: Room) -> None:
    [alert] = await new_run(room, status="failed")
    await new_run(room)
    [edited] = await room.press(alert, "Silence 24 h")
    assert lines(edited)[0] == "🟠 nightly says it failed"


@pytest.mark.parametrize("label", ["Recheck", "History", "Silence 1 h"])
async def test_a_button_whose_run_is_gone_says_so(room: Room, label: str) -> None:
    [alert] = await new_run(room, result="n/a")
    alert.buttons = {text: data.replace(":1", ":99") for text, data in alert.buttons.items()}
    [answer] = await room.press(alert, label)
    assert answer.text == "That run is no longer known. /history and /workflows show how things stand."


async def test_a_run_whose_output_was_overwritten_is_not_checked_again(room: Room) -> None:
    await new_run(room, result="n/a")
    await new_run(room)
    shown = await room.ask("/run 1")
    await room.press(shown, "Recheck")
    [answer] = await room.verify()
    told = "Run #1 of nightly cannot be judged again: what lies there now is the output of run #2."
    assert answer.text == told


async def test_a_run_of_a_workflow_that_is_no_longer_watched_is_not_checked(room: Room) -> None:
    [alert] = await new_run(room, result="n/a")
    await room.rewrite(WATCHLIST)
    [answer] = await room.press(alert, "Recheck")
    assert answer.text == "The workflow nightly is no longer in the watch list."
    assert await room.verify() == []


async def test_only_admins_press_what_acts(room: Room) -> None:
    [alert] = await new_run(room, result="n/a")
    for label in alert.buttons:
        assert await room.press(alert, label, person=STRANGER) == []
    assert await room.verify() == []


# ── /verify ───────────────────────────────────────────────────────────────────────────────────────


async def test_verify_answers_at_once_and_then_with_every_check(room: Room) -> None:
    room.leave()
    checking = await room.ask("/verify nightly")
    assert checking.text == "⏳ Checking nightly …"
    [answer] = await room.verify()
    assert answer.reply_to == checking.reply_to
    assert lines(answer) == [
        "✅ nightly passed",
        "✅ exists report.json, 57 bytes",
        "✅ parses JSON",
        "✅ fields status, result and timestamp hold values",
        "✅ fresh timestamp is 0 s old, at most 30 min",
        "✅ status ok",
        f"Output {room.folder}/report.json",
        "Run #1 at 12:00:00",
    ]
    assert list(answer.buttons) == ["Recheck", "History"]


async def test_checks_after_the_failing_one_are_not_reached(room: Room) -> None:
    [_, answer] = await room.check()
    assert lines(answer)[1:6] == [
        f"❌ exists {room.folder}/report.json does not exist, expected a regular file",
        "▫️ parses: not reached",
        "▫️ fields: not reached",
        "▫️ fresh: not reached",
        "▫️ status: not reached",
    ]


async def test_an_answer_goes_to_whoever_has_asked(tmp_path: Path) -> None:
    """The alert, if it comes to one, goes where alerts go."""
    async with open_room(tmp_path, watchlist=WATCHLIST + NIGHTLY) as room:
        await room.type("/verify nightly", person=COLLEAGUE)
        alert, answer = await room.verify()
        assert (alert.chat, answer.chat) == (1, COLLEAGUE.id)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", ["Which one? /verify NAME: hourly, nightly"]),
        ("nihgtly", ["No workflow nihgtly. Did you mean nightly?", "Known: hourly, nightly"]),
        ("x\u202e/kill", ["No workflow x/kill.", "Known: hourly, nightly"]),
    ],
)
async def test_verify_says_which_workflows_there_are(room: Room, words: str, said: list[str]) -> None:
    assert lines(await room.ask(f"/verify {words}")) == said
    assert await room.verify() == []


@pytest.mark.parametrize("command", ["/verify", "/verify nightly", "/workflows"])
async def test_without_workflows_there_is_nothing_to_say(tmp_path: Path, command: str) -> None:
    async with open_room(tmp_path) as room:
        assert (await room.ask(command)).text == "The watch list has no workflows."


# ── /history ──────────────────────────────────────────────────────────────────────────────────────


async def test_history_is_shown_newest_first_ten_to_a_page(room: Room) -> None:
    await some_runs(room, 25)
    page = await room.ask("/history")
    assert lines(page)[:3] == [
        "History",
        "✅ #25 nightly passed, 12:25:00",
        "❌ #24 nightly failed: fields, 12:24:00",
    ]
    assert lines(page)[-1] == "/run ID shows one with every check."
    assert len(lines(page)) == 12
    assert list(page.buttons) == ["• All", "Pass", "Fail", "Missing", "Older", "Workflow …"]


async def test_pages_are_turned_in_the_message_itself(room: Room) -> None:
    """There and back; a page that would be short at the newest end is the newest page."""
    await some_runs(room, 25)
    first = await room.ask("/history nightly")
    newest = lines(first)
    numbers = []
    for label in ("Older", "Older", "Newer", "Newer"):
        [page] = await room.press(first, label)
        assert page.id == first.id
        numbers.append((lines(page)[1].split()[1], list(page.buttons)[4:-1]))
    assert numbers == [
        ("#15", ["Newer", "Older"]),
        ("#5", ["Newer"]),
        ("#15", ["Newer", "Older"]),
        ("#25", ["Older"]),
    ]
    assert lines(first) == newest


async def test_what_came_meanwhile_does_not_shift_the_pages(room: Room) -> None:
    await some_runs(room, 12)
    page = await room.ask("/history nightly")
    await some_runs(room, 3)
    [older] = await room.press(page, "Older")
    assert [line.split()[1] for line in lines(older)[1:-1]] == ["#2", "#1"]
    [newer] = await room.press(older, "Newer")
    assert lines(newer)[1].split()[1] == "#12"
    assert "Newer" in newer.buttons
    [newest] = await room.press(newer, "Newer")
    assert lines(newest)[1].split()[1] == "#15"


async def test_history_is_filtered_by_outcome(room: Room) -> None:
    await some_runs(room, 6)
    page = await room.ask("/history")
    await room.press(page, "Fail")
    assert lines(page)[:-1] == [
        "History: failed",
        "❌ #6 nightly failed: fields, 12:06:00",
        "❌ #3 nightly failed: fields, 12:03:00",
    ]
    assert list(page.buttons)[:4] == ["All", "Pass", "• Fail", "Missing"]
    await room.press(page, "Missing")
    assert lines(page) == ["History: missing", "Nothing so far."]
    await room.press(page, "All")
    assert len(lines(page)) == 8


async def test_history_is_filtered_by_workflow(room: Room) -> None:
    """The outcome stays as it was chosen."""
    await new_run(room, result=None)
    await new_run(room)
    await room.check("hourly")
    page = await room.ask("/history")
    await room.press(page, "Fail")
    [choice] = await room.press(page, "Workflow …")
    assert (choice.id, choice.text) == (page.id, "Whose history?")
    assert list(choice.buttons) == ["All workflows", "hourly", "nightly"]
    await room.press(page, "nightly")
    assert lines(page)[:-1] == ["History of nightly: failed", "❌ #1 failed: fields, 12:01:00"]
    await room.press(page, "Workflow …")
    await room.press(page, "All workflows")
    assert lines(page)[0] == "History: failed"
    assert len(lines(page)) == 4


async def test_of_one_workflow_there_is_no_choice(tmp_path: Path) -> None:
    async with open_room(tmp_path, watchlist=WATCHLIST + NIGHTLY) as room:
        await room.check()
        assert "Workflow …" not in (await room.ask("/history")).buttons


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("/history", "History\nNothing so far."),
        ("/history nightly", "History of nightly\nNothing so far."),
        ("/history night", "No workflow night. Did you mean nightly?\nKnown: hourly, nightly"),
    ],
)
async def test_history_says_so_when_there_is_none(room: Room, command: str, said: str) -> None:
    assert (await room.ask(command)).text == said


async def test_a_workflow_that_nobody_has_looked_at_yet_has_no_history(tmp_path: Path) -> None:
    async with open_room(tmp_path, watchlist=WATCHLIST + NIGHTLY) as room:
        assert (await room.ask("/history nightly")).text == "▫️ nightly has not run yet"


# ── /run ID ───────────────────────────────────────────────────────────────────────────────────────


async def test_run_shows_everything_of_a_run(tmp_path: Path) -> None:
    async with open_room(tmp_path, watchlist=WATCHLIST + DUE) as room:
        await room.run("run_watch")
        room.leave(result="n/a")
        await room.check()
        room.clock.go_on(60)
        room.leave()
        await room.check()
        shown = await room.ask("/run 1")
        digest = lines(shown).pop(9)
        assert digest.startswith("sha256 ")
        assert len(digest.split()[1]) == 64
        assert [line for line in lines(shown) if line != digest] == [
            "✅ nightly passed",
            "Run #1, due at 02:00:00",
            "✅ exists report.json, 57 bytes",
            "✅ parses JSON",
            "✅ fields status, result and timestamp hold values",
            "✅ fresh timestamp is 0 s old, at most 30 min",
            "✅ status ok",
            f"Output {tmp_path}/report.json",
            "57 bytes, written at 12:01:00",
            "Verified at 12:01:00, asked for in the chat; took 0.0 s",
            "Earlier verdicts",
            "❌ failed: fields at 12:00:00",
        ]
        assert list(shown.buttons) == ["Recheck", "History"]


async def test_run_is_named_by_the_number_that_the_chat_shows(room: Room) -> None:
    await new_run(room)
    assert (await room.ask("/run #1")).text == (await room.ask("/run 1")).text


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("", "Which one? /run ID, with an id from /history."),
        ("2", "No run 2. /history lists them."),
        ("9" * 30, f"No run {'9' * 30}. /history lists them."),
        ("x", "No run x. /history lists them."),
    ],
)
async def test_run_says_what_it_needs(room: Room, words: str, said: str) -> None:
    await new_run(room)
    assert (await room.ask(f"/run {words}")).text == said


# ── /workflows ────────────────────────────────────────────────────────────────────────────────────


async def test_workflows_says_how_each_stands_and_when_it_is_due(tmp_path: Path) -> None:
    """Those first that did not deliver."""
    async with open_room(tmp_path, watchlist=WATCHLIST + DUE + HOURLY) as room:
        await room.run("run_watch")
        assert lines(await room.ask("/workflows")) == [
            "Workflows",
            "▫️ nightly has not run yet",
            "    next 2100-05-02 02:00",
            "▫️ hourly has not run yet",
            "    next 13:00:00",
            "/verify NAME checks one now, /history NAME shows its runs.",
        ]
        await room.check("hourly")
        room.clock.go_on(HOUR + 1)
        [alert, _] = await room.check("hourly")
        await room.press(alert, "Silence 24 h")
        assert lines(await room.ask("/workflows"))[1:4] == [
            "❌ hourly failed: exists",
            "    run #2 13:00:01, 2 failures in a row, next 14:00:01",
            "    🔕 silenced until 2100-05-02 13:00",
        ]
        room.clock.go_on(HOUR)
        assert "due since 14:00:01" in lines(await room.ask("/workflows"))[2]


async def test_an_earlier_run_that_is_judged_again_does_not_say_how_its_workflow_stands(room: Room) -> None:
    [alert] = await new_run(room, result="n/a")
    await new_run(room)
    (room.folder / "report.json").unlink()
    alert.buttons["Recheck"] = "r:again:1"
    await room.press(alert, "Recheck")
    [edited] = [message for message in await room.verify() if message.id == alert.id]
    assert "delivers again" in edited.text
    assert lines(await room.ask("/workflows"))[1:3] == ["✅ nightly passed", "    run #2 12:02:00"]


async def test_a_workflow_that_is_no_longer_watched_is_left_out_but_keeps_its_history(room: Room) -> None:
    await new_run(room)
    await room.rewrite(WATCHLIST + HOURLY)
    assert "nightly" not in (await room.ask("/workflows")).text
    assert "#1 passed" in (await room.ask("/history nightly")).text


async def test_what_a_group_asks_is_answered_there(tmp_path: Path) -> None:
    async with open_room(tmp_path, watchlist=WATCHLIST + NIGHTLY, chat=Chat(id=GROUP)) as room:
        await room.type("/verify nightly", chat=GROUP)
        alert, answer = await room.verify()
        assert (alert.chat, answer.chat) == (GROUP, GROUP)

"""Pins in the chat: an edited watch list, the buttons under what is told of it, /audit, /status and /workflows."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.console import Shown
from bot.settings import Chat
from tests.bot.room import COLLEAGUE, GROUP, STRANGER, WATCHLIST, Room, open_room

NIGHTLY = """
[workflows.nightly]
output = "report.json"
required = ["status", "result"]
max_age = "30m"
"""
LOOSER = NIGHTLY.replace("30m", "1d")
THIRD = NIGHTLY.replace("30m", "2d")
CHECKED = """
[workflows.checked]
output = "checked.json"
command = { argv = ["true"] }
"""
MANY = '\n[workflows.nightly]\noutput = "report.json"\nrequired = [' + ", ".join(
    f'"field_{number}"' for number in range(45)
)


@pytest.fixture
async def room(tmp_path: Path) -> AsyncIterator[Room]:
    """A bot that has pinned what it has found, and told so."""
    async with open_room(tmp_path, watchlist=WATCHLIST + NIGHTLY) as room:
        await room.deliver()
        yield room


def lines(shown: Shown) -> list[str]:
    return shown.text.splitlines()


async def edit(room: Room, workflows: str) -> list[Shown]:
    """Write the watch list anew, and let the bot look at it."""
    room.clock.go_on(60)
    (room.folder / "loopwarden.toml").write_text(WATCHLIST + workflows)
    return await room.look_at_watchlist()


async def proposed(room: Room, workflows: str = LOOSER) -> Shown:
    """Return the message that a change of the watch list makes."""
    [told] = await edit(room, workflows)
    return told


def max_age(room: Room) -> float:
    """Return what is in force."""
    return room.app.handling.desk.watch.workflows()["nightly"].max_age


async def act(room: Room) -> None:
    """Let what was decided come into force."""
    await room.app.handling.desk.pinning.enforce()


# ── at first sight ────────────────────────────────────────────────────────────────────────────────


async def test_what_the_bot_finds_at_first_is_pinned_and_told(room: Room) -> None:
    [told] = room.shown
    assert lines(told)[:4] == [
        "📌 Pinned as they were found: 3 entries",
        "Workflow: nightly",
        "Source: gateway",
        "Killer: stopper",
    ]
    assert await edit(room, NIGHTLY) == []


async def test_many_changes_are_one_message_and_each_is_shown_and_approved_by_audit(tmp_path: Path) -> None:
    many = [NIGHTLY, *(NIGHTLY.replace("nightly", f"w{number}") for number in range(8))]
    async with open_room(tmp_path, watchlist=WATCHLIST + "".join(many)) as room:
        await room.deliver()
        [told] = await edit(room, "".join(many).replace("30m", "1d"))
        assert lines(told)[0] == "📌 The file differs: 9 entries"
        assert "/audit shows each" in told.text
        listed = await room.ask("/audit")
        [shown] = await room.press(listed, "Show #1")
        assert "max_age: 30 min → 1 d  looser" in shown.text
        answers = await room.press(shown, "Approve")
        assert all("Approved: workflow nightly" in answer.text for answer in answers)
        await act(room)
        assert max_age(room) == 86_400


# ── a change ──────────────────────────────────────────────────────────────────────────────────────


async def test_a_change_has_no_effect_until_it_is_approved(room: Room) -> None:
    told = await proposed(room)
    assert lines(told) == [
        "📌 The file differs: workflow nightly",
        "What was pinned is in force since 12:00:00, and stays so until an admin approves this:",
        "max_age: 30 min → 1 d  looser",
    ]
    assert max_age(room) == 1800
    [edited] = await room.press(told, "Approve")
    assert (edited.id, lines(edited)) == (
        told.id,
        ["✅ Approved: workflow nightly by user 1", "It is in force now.", "max_age: 30 min → 1 d  looser"],
    )
    assert edited.buttons == {}
    await act(room)
    assert max_age(room) == 86_400
    assert await edit(room, LOOSER) == []


async def test_a_rejected_change_has_none_and_is_not_asked_again(room: Room) -> None:
    told = await proposed(room)
    [edited] = await room.press(told, "Reject", person=COLLEAGUE)
    assert (edited.id, lines(edited)[:2]) == (
        told.id,
        [
            "🚫 Rejected: workflow nightly by user 2",
            "What was pinned stays in force since 12:00:00, and the file differs.",
        ],
    )
    await act(room)
    assert max_age(room) == 1800
    assert await edit(room, LOOSER) == []
    third = await proposed(room, THIRD)
    assert third.id != told.id


async def test_a_change_that_is_taken_back_needs_no_answer(room: Room) -> None:
    told = await proposed(room)
    [edited] = await edit(room, NIGHTLY)
    assert (edited.id, lines(edited)[0], edited.buttons) == (
        told.id,
        "↩️ Taken back: workflow nightly",
        {},
    )


@pytest.mark.parametrize("label", ["Approve", "Reject"])
async def test_a_button_of_what_the_file_said_before_changes_nothing(room: Room, label: str) -> None:
    """Who reads one text must not approve another: the message was edited under the finger."""
    told = await proposed(room)
    buttons = dict(told.buttons)
    edited = await proposed(room, THIRD)
    assert (edited.id, lines(edited)[-1]) == (told.id, "max_age: 30 min → 2 d  looser")
    newer, edited.buttons = edited.buttons, buttons
    [answer] = await room.press(edited, label)
    assert lines(answer) == [
        "Nothing was done: the file has changed again, or this was decided already. /audit shows how things stand."
    ]
    await act(room)
    assert max_age(room) == 1800
    edited.buttons = newer
    await room.press(edited, "Approve")
    await act(room)
    assert max_age(room) == 2 * 86_400


async def test_a_second_press_changes_nothing(room: Room) -> None:
    told = await proposed(room)
    buttons = dict(told.buttons)
    await room.press(told, "Approve")
    for label in ("Reject", "Approve"):
        told.buttons = buttons
        [answer] = await room.press(told, label, person=COLLEAGUE)
        assert "Nothing was done" in answer.text
    await act(room)
    assert max_age(room) == 86_400


async def test_a_button_of_a_proposal_that_nobody_knows_changes_nothing(room: Room) -> None:
    told = await proposed(room)
    for verb in ("yes", "no", "page", "show"):
        told.buttons = {"Stray": f"p:{verb}:99:0"}
        [answer] = await room.press(told, "Stray")
        assert "Nothing was done" in answer.text
    await act(room)
    assert max_age(room) == 1800


async def test_only_an_admin_approves(tmp_path: Path) -> None:
    async with open_room(tmp_path, watchlist=WATCHLIST + NIGHTLY, chat=Chat(id=GROUP)) as room:
        await room.deliver()
        told = await proposed(room)
        assert told.chat == GROUP
        assert await room.press(told, "Approve", person=STRANGER) == []
        await act(room)
        assert max_age(room) == 1800


async def test_a_removal_is_asked_and_what_is_removed_is_in_force_until_then(room: Room) -> None:
    told = await proposed(room, "")
    assert lines(told)[0] == "📌 No longer in the file: workflow nightly"
    assert "nightly" in room.app.handling.desk.watch.workflows()
    [edited] = await room.press(told, "Approve")
    assert lines(edited)[:2] == ["✅ Removed: workflow nightly by user 1", "It is no longer in force."]
    await act(room)
    assert "nightly" not in room.app.handling.desk.watch.workflows()


async def test_a_new_command_is_asked_with_what_is_not_pinned_of_it(room: Room) -> None:
    told = await proposed(room, NIGHTLY + CHECKED)
    assert lines(told)[:2] == [
        "📌 New in the file: workflow checked",
        "It is not in force until an admin approves it.",
    ]
    assert "Not pinned: what it reads or starts in turn" in lines(told)
    assert "Not pinned: true, which is found on the PATH" in lines(told)
    [edited] = await room.press(told, "Reject")
    assert lines(edited)[:2] == [
        "🚫 Rejected: workflow checked by user 1",
        "It is not in force, though the file has it.",
    ]


# ── pages ─────────────────────────────────────────────────────────────────────────────────────────


async def test_pages_are_turned_in_the_message_and_the_last_one_approves(room: Room) -> None:
    told = await proposed(room, MANY + "]\n")
    assert list(told.buttons) == ["More 2/3", "Reject"]
    [second] = await room.press(told, "More 2/3")
    assert (second.id, list(second.buttons)) == (told.id, ["Back 1/3", "More 3/3", "Reject"])
    [third] = await room.press(told, "More 3/3")
    assert list(third.buttons) == ["Back 2/3", "Approve", "Reject"]
    [decided] = await room.press(told, "Approve")
    assert (decided.id, lines(decided)[0]) == (told.id, "✅ Approved: workflow nightly by user 1")


async def test_a_page_of_what_the_file_said_before_is_not_turned(room: Room) -> None:
    told = await proposed(room, MANY + "]\n")
    buttons = dict(told.buttons)
    await proposed(room, MANY + ', "one_more"]\n')
    told.buttons = buttons
    [answer] = await room.press(told, "More 2/3")
    assert "the file has changed again" in answer.text


# ── /audit ────────────────────────────────────────────────────────────────────────────────────────


async def test_audit_lists_every_pin_newest_first(room: Room) -> None:
    await room.press(await proposed(room), "Approve")
    answer = await room.ask("/audit")
    assert lines(answer)[:2] == ["Pins", "12:01:00 workflow nightly: approved by user 1"]
    assert lines(answer)[2].endswith(": max_age looser")
    assert [line for line in lines(answer)[3:] if "pinned as it was found" in line] == [
        "12:00:00 workflow nightly: pinned as it was found",
        "12:00:00 killer stopper: pinned as it was found",
        "12:00:00 source gateway: pinned as it was found",
    ]


async def test_audit_is_turned_in_its_message(tmp_path: Path) -> None:
    many = "".join(f'\n[workflows.w{number}]\noutput = "{number}.json"\n' for number in range(20))
    async with open_room(tmp_path, watchlist=WATCHLIST + many) as room:
        await room.deliver()
        answer = await room.ask("/audit")
        seen = lines(answer)
        for label in ("Older", "Older"):
            [answer] = await room.press(answer, label)
            seen += lines(answer)
        assert [sum(f"workflow w{number}:" in line for line in seen) for number in range(20)] == [1] * 20
        assert list(answer.buttons) == ["Newer"]
        [answer] = await room.press(answer, "Newer")
        assert list(answer.buttons) == ["Newer", "Older"]


async def test_audit_names_first_what_is_not_as_in_the_file_and_shows_it_again(room: Room) -> None:
    """The message of a proposal may be far up in the chat, or deleted."""
    told = await proposed(room)
    answer = await room.ask("/audit")
    assert lines(answer)[:3] == [
        "Not as in the file",
        "#1 workflow nightly: the file differs from what is in force; it waits for approval",
        "Pins",
    ]
    [copy] = await room.press(answer, "Show #1")
    assert (copy.id != told.id, copy.text, copy.buttons) == (True, told.text, told.buttons)
    await room.press(copy, "Approve")
    assert told.text == copy.text
    assert lines(told)[0] == "✅ Approved: workflow nightly by user 1"
    assert told.buttons == copy.buttons == {}
    await act(room)
    assert max_age(room) == 86_400


async def test_what_was_rejected_is_shown_again_and_can_still_be_approved(room: Room) -> None:
    """By a wrong tap, or by who knew less."""
    told = await proposed(room)
    await room.press(told, "Reject")
    room.clock.go_on(91 * 86_400)
    await room.run("retention")
    answer = await room.ask("/audit")
    assert lines(answer)[1].endswith("the file differs from what is in force; it was rejected")
    [copy] = await room.press(answer, "Show #1")
    assert (lines(copy)[0], list(copy.buttons)) == ("🚫 Rejected: workflow nightly by user 1", ["Approve"])
    await room.press(copy, "Approve", person=COLLEAGUE)
    assert lines(copy)[0] == lines(told)[0] == "✅ Approved: workflow nightly by user 2"
    await act(room)
    assert max_age(room) == 86_400


@pytest.mark.parametrize("then", [THIRD, NIGHTLY], ids=["third", "back"])
async def test_what_was_rejected_is_not_approved_once_the_file_says_something_else(
    room: Room, then: str
) -> None:
    told = await proposed(room)
    await room.press(told, "Reject")
    buttons = dict(told.buttons)
    await edit(room, then)
    told.buttons = buttons
    [answer] = await room.press(told, "Approve")
    assert "Nothing was done" in answer.text
    await act(room)
    assert max_age(room) == 1800


async def test_every_entry_that_differs_can_be_shown_however_many_there_are(tmp_path: Path) -> None:
    many = "".join(f'\n[workflows.w{number}]\noutput = "{number}.json"\n' for number in range(20))
    async with open_room(tmp_path, watchlist=WATCHLIST + many) as room:
        await room.deliver()
        await edit(room, many.replace(".json", ".txt"))
        answer = await room.ask("/audit")
        labels = list(answer.buttons)
        for _ in range(2):
            [answer] = await room.press(answer, "Older")
            labels += answer.buttons
        assert [label for label in labels if label.startswith("Show")] == [
            f"Show #{number}" for number in range(1, 21)
        ]


# ── /status and /workflows ────────────────────────────────────────────────────────────────────────


async def test_status_and_workflows_say_where_the_file_differs(room: Room) -> None:
    waits = "the file differs from what is in force; it waits for approval"
    told = await proposed(room)
    await room.scan()
    status = await room.ask("/status")
    assert lines(status)[0].startswith("🟡")
    assert f"📌 workflow nightly: {waits}" in lines(status)
    assert f"    📌 {waits}" in lines(await room.ask("/workflows"))
    await room.press(told, "Reject")
    rejected = "the file differs from what is in force; it was rejected"
    assert f"📌 workflow nightly: {rejected}" in lines(await room.ask("/status"))
    await edit(room, NIGHTLY)
    assert "📌" not in (await room.ask("/status")).text
    assert "📌" not in (await room.ask("/workflows")).text


async def test_workflows_names_one_that_is_not_in_force_yet(room: Room) -> None:
    await proposed(room, NIGHTLY + CHECKED)
    new = "📌 workflow checked: new in the file, not in force; it waits for approval"
    assert new in lines(await room.ask("/workflows"))
    assert new in lines(await room.ask("/status"))


async def test_what_is_not_in_force_yet_is_not_verified(room: Room) -> None:
    await proposed(room, NIGHTLY + CHECKED)
    answer = await room.ask("/verify checked")
    assert answer.text == "📌 workflow checked: new in the file, not in force; it waits for approval"


async def test_a_proposal_that_waits_for_long_can_still_be_decided(room: Room) -> None:
    told = await proposed(room)
    room.clock.go_on(91 * 86_400)
    await room.run("retention")
    [edited] = await room.press(told, "Approve")
    assert edited.id == told.id


async def test_what_was_asked_before_a_restart_is_decided_after_it(tmp_path: Path) -> None:
    """Nothing is asked again by it, and nothing comes into force."""
    async with open_room(tmp_path, watchlist=WATCHLIST + NIGHTLY) as room:
        told = await proposed(room, MANY + "]\n")
    async with open_room(tmp_path, watchlist=WATCHLIST + MANY + "]\n", before=room) as again:
        assert await again.look_at_watchlist() == []
        assert max_age(again) == 1800
        await again.press(told, "More 2/3")
        await again.press(told, "More 3/3")
        [edited] = await again.press(told, "Approve")
        assert (edited.id, lines(edited)[0]) == (told.id, "✅ Approved: workflow nightly by user 1")


async def test_what_is_asked_while_the_database_fails_can_be_decided(room: Room) -> None:
    told = await proposed(room)
    failure = sqlite3.OperationalError("disk I/O error")
    failure.sqlite_errorcode = sqlite3.SQLITE_IOERR
    assert await room.app.handling.desk.store.endure(failure)
    assert "it waits for approval" in (await room.ask("/audit")).text
    [edited] = await room.press(told, "Approve")
    assert lines(edited)[0] == "✅ Approved: workflow nightly by user 1"
    await act(room)
    assert max_age(room) == 86_400

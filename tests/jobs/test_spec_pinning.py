"""What is enforced is what a person has approved, whatever the watch list says."""

import os
import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from bot.watching import WatchlistFile
from jobs.alert.notice import PricesNotice, WatchlistNotice
from jobs.alert.pin_notice import (
    MOST_IN_ONE,
    AlteredNotice,
    FirstUseNotice,
    LetGoNotice,
    Pinned,
    ProposalNotice,
    ProposalsNotice,
)
from jobs.answering import Decided
from jobs.pinning.change import Mark
from jobs.pinning.kind import How, Kind, ProposalState
from jobs.pinning.pin import Entry, Pin, hash_of
from jobs.ports import Killer
from jobs.store.database import Database
from jobs.store.schema import FILE_NAME
from jobs.thrash.policy import OnDetection
from jobs.watchlist.error import WatchlistError
from tests.jobs.pins import (
    ADMIN,
    KILLER,
    LAX,
    LAXER,
    SOURCE,
    STRICT,
    WATCHLIST,
    PinWorld,
    proposed,
)

OPEN, APPROVED, REJECTED, WITHDRAWN = ProposalState
HOUR = 3600
MANY = MOST_IN_ONE + 1
OTHER_SOURCE = '\n[[sources]]\nname = "other"\nformat = "gateway"\npath = "{path}"\n'
COMMAND = '\n[workflows.tested]\noutput = "out.json"\ncommand = {{ argv = ["{program}", "{{path}}"] }}\n'


@pytest.fixture
def world(tmp_path: Path, store: Database) -> PinWorld:
    return PinWorld(folder=tmp_path, store=store)


def killer_of(world: PinWorld, source: str = "gateway") -> Killer | None:
    return world.watch.sources()[source].killer


# ── at first sight ────────────────────────────────────────────────────────────────────────────────


async def test_what_is_found_first_is_pinned_and_told(world: PinWorld) -> None:
    """All of it is in force at once, and one message names it."""
    world.write(WATCHLIST)
    await world.pinning.begin()
    assert world.names == ["gateway", "nightly"]
    assert killer_of(world) is not None
    [message] = await world.hear()
    assert isinstance(message.notice, FirstUseNotice)
    assert [(pinned.kind, pinned.name) for pinned in message.notice.entries] == [
        (Kind.WORKFLOW, "nightly"),
        (Kind.SOURCE, "gateway"),
        (Kind.KILLER, "stopper"),
    ]
    pins = await world.store.reading.pins.in_force()
    assert {(pin.how, pin.by, pin.at) for pin in pins} == {(How.FIRST_USE, None, world.clock.now())}


async def test_a_list_that_is_left_alone_is_not_told(world: PinWorld) -> None:
    """Nor one that was only saved again, nor after a restart."""
    await world.first_used()
    assert await world.look() == []
    assert await world.after(WATCHLIST, "\n# a remark\n") == []
    world = await world.restarted()
    assert await world.look() == []
    assert world.names == ["gateway", "nightly"]


async def test_what_the_pins_do_not_hold_still_is_said_at_first_sight(world: PinWorld) -> None:
    world.write(COMMAND.format(program="grep"))
    await world.pinning.begin()
    [message] = await world.hear()
    assert isinstance(message.notice, FirstUseNotice)
    [entry] = message.notice.entries
    assert entry.not_pinned == (
        "what it reads or starts in turn",
        "grep, which is found on the PATH",
        "{path}, which is another one each time",
    )


@pytest.mark.parametrize("content", ["[", None])
async def test_a_wrong_list_is_an_error_where_nothing_was_ever_pinned(
    world: PinWorld, content: str | None
) -> None:
    """And no message: nobody guards yet."""
    if content is not None:
        world.write(content)
    with pytest.raises(WatchlistError, match="no such file" if content is None else "line 1"):
        await world.pinning.begin()
    assert await world.hear() == []


# ── an edit ───────────────────────────────────────────────────────────────────────────────────────


async def test_an_edit_changes_nothing_and_is_asked(world: PinWorld) -> None:
    """The message shows what differs, and since when the other is in force."""
    await world.first_used()
    since = world.clock.now()
    [message] = await world.after(SOURCE, KILLER, LAX)
    notice = proposed(message)
    assert (notice.kind, notice.name, notice.state) == (Kind.WORKFLOW, "nightly", OPEN)
    assert (notice.is_new, notice.is_gone, notice.in_force_since) == (False, False, since)
    [change] = notice.changes
    assert (change.field, change.mark) == ("max_age", Mark.LOOSER)
    assert notice.proposal == (await world.proposal()).id
    assert world.max_age == 0.5 * HOUR
    assert await world.look() == []


async def test_an_edit_while_the_bot_was_away_changes_nothing_either(world: PinWorld) -> None:
    await world.first_used()
    world.write(SOURCE, KILLER, LAX)
    world = await world.restarted()
    assert world.max_age == 0.5 * HOUR
    [message] = await world.hear()
    assert proposed(message).state is OPEN


async def test_what_is_approved_is_in_force_and_its_message_says_so(world: PinWorld) -> None:
    await world.first_used()
    [asked] = await world.after(SOURCE, KILLER, LAX)
    assert await world.pinning.approve(proposed(asked).proposal, ADMIN) is Decided.DONE
    await world.pinning.enforce()
    assert world.max_age == 24 * HOUR
    [answered] = await world.hear()
    notice = proposed(answered)
    assert answered.edits == asked.id
    assert (notice.state, notice.decided_by, notice.changes) == (APPROVED, ADMIN, proposed(asked).changes)
    assert notice.in_force_since == proposed(asked).in_force_since
    pin = await world.store.reading.pins.of(Kind.WORKFLOW, "nightly")
    assert pin is not None
    assert (pin.how, pin.by, pin.at) == (How.APPROVED, ADMIN, world.clock.now())
    assert await world.look() == []


async def test_what_is_rejected_is_not_asked_again(world: PinWorld) -> None:
    """The file differs, and goes on to, however often it is saved and the bot restarted."""
    await world.first_used()
    [asked] = await world.after(SOURCE, KILLER, LAX)
    assert await world.pinning.reject(proposed(asked).proposal, ADMIN) is Decided.DONE
    [answered] = await world.hear()
    assert (answered.edits, proposed(answered).state) == (asked.id, REJECTED)
    assert await world.after(SOURCE, KILLER, LAX, "\n# please\n") == []
    world = await world.restarted()
    assert await world.look() == []
    assert world.max_age == 0.5 * HOUR


async def test_a_third_edit_takes_the_place_of_the_second_in_its_message(world: PinWorld) -> None:
    """Approve under the older text is answered with that, and approves nothing."""
    await world.first_used()
    [asked] = await world.after(SOURCE, KILLER, LAX)
    [again] = await world.after(SOURCE, KILLER, LAXER)
    assert again.edits == asked.id
    assert await world.pinning.approve(proposed(asked).proposal, ADMIN) is Decided.PAST
    assert await world.pinning.approve(proposed(again).proposal, ADMIN) is Decided.DONE
    await world.pinning.enforce()
    assert world.max_age == 48 * HOUR


async def test_a_question_that_was_not_sent_yet_is_replaced_before_anybody_has_read_it(
    world: PinWorld,
) -> None:
    await world.first_used()
    for watchlist in (LAX, LAXER):
        world.write(SOURCE, KILLER, watchlist)
        await world.pinning()
        await world.pinning()
    [asked] = await world.hear()
    assert asked.edits is None
    assert await world.pinning.approve(proposed(asked).proposal, ADMIN) is Decided.DONE
    await world.pinning.enforce()
    assert world.max_age == 48 * HOUR


async def test_only_what_was_shown_is_approved(world: PinWorld) -> None:
    """Not what the file says by the time of the press, though the bot has not looked since."""
    await world.first_used()
    [asked] = await world.after(SOURCE, KILLER, LAX)
    world.write(SOURCE, KILLER, LAXER)
    assert await world.pinning.approve(proposed(asked).proposal, ADMIN) is Decided.DONE
    assert [proposed(message).state for message in await world.look()] == [APPROVED, OPEN]
    assert world.max_age == 24 * HOUR


async def test_a_file_that_returns_to_what_is_in_force_asks_nothing_any_more(world: PinWorld) -> None:
    await world.first_used()
    [asked] = await world.after(SOURCE, KILLER, LAX)
    [taken_back] = await world.after(WATCHLIST)
    assert (taken_back.edits, proposed(taken_back).state) == (asked.id, WITHDRAWN)
    assert await world.pinning.approve(proposed(asked).proposal, ADMIN) is Decided.PAST
    [asked_again] = await world.after(SOURCE, KILLER, LAX)
    assert (asked_again.edits, proposed(asked_again).state) == (asked.id, OPEN)
    await world.after(WATCHLIST)
    world.clock.go_on(HOUR)
    [asked_later] = await world.after(SOURCE, KILLER, LAX)
    assert (asked_later.edits, proposed(asked_later).state) == (None, OPEN)


async def test_what_the_file_says_only_at_one_look_is_not_asked(world: PinWorld) -> None:
    """An editor may have emptied it for a moment, or have written half of it."""
    await world.first_used()
    for content in ("", "[", SOURCE):
        world.write(content)
        assert await world.look(times=1) == []
        world.write(WATCHLIST)
        assert await world.look(times=1) == []
    assert await world.look() == []


def many(max_age: str) -> list[str]:
    return [
        f'\n[workflows.w{number}]\noutput = "w{number}.json"\nmax_age = "{max_age}"\n'
        for number in range(MANY)
    ]


async def test_many_changes_are_asked_in_one_message(world: PinWorld) -> None:
    """Each is asked by /audit; who answers one is told in a message of its own, and of the others nothing."""
    await world.first_used(*many("30m"))
    [told] = await world.after(*many("1d"))
    assert isinstance(told.notice, ProposalsNotice)
    assert (told.notice.count, len(told.notice.entries)) == (MANY, MOST_IN_ONE)
    proposal = await world.proposal("w7")
    asked = await world.pinning.asked(proposal.id)
    assert asked is not None
    assert [(change.field, change.mark) for change in asked.changes] == [("max_age", Mark.LOOSER)]
    await world.approve("w7")
    assert await world.pinning.asked(proposal.id) is None
    [answered] = await world.hear()
    assert (answered.edits, proposed(answered).name, proposed(answered).state) == (None, "w7", APPROVED)
    await world.after(*many("30m"))
    assert await world.pinning.asked(proposal.id - 1) is None
    assert await world.pinning.asked(99) is None


async def test_a_file_that_changes_to_and_fro_is_told_in_the_messages_of_the_hour(world: PinWorld) -> None:
    await world.first_used(*many("30m"))
    told = [message for max_age in ("1d", "30m") * 5 for message in await world.after(*many(max_age))]
    assert {type(message.notice) for message in told} == {ProposalsNotice}
    assert [message.edits for message in told] == [None, *[told[0].id] * 4]


async def test_an_alert_overtakes_all_that_is_told_of_pins(world: PinWorld) -> None:
    await world.first_used()
    alter(world, "UPDATE pin SET hash = 'other' WHERE name = 'nightly'")
    world.write(SOURCE, KILLER, *many("1d")[:5])
    world = await world.restarted()
    first, *others = await world.hear()
    assert first.notice == AlteredNotice(kind=Kind.WORKFLOW, name="nightly")
    assert others


async def test_what_was_rejected_is_asked_again_after_the_file_had_returned(world: PinWorld) -> None:
    await world.first_used()
    [asked] = await world.after(SOURCE, KILLER, LAX)
    await world.pinning.reject(proposed(asked).proposal, ADMIN)
    await world.hear()
    [returned] = await world.after(WATCHLIST)
    assert (returned.edits, proposed(returned).state) == (asked.id, WITHDRAWN)
    [again] = await world.after(SOURCE, KILLER, LAX)
    assert (again.edits, proposed(again).state) == (None, OPEN)


async def test_a_third_thing_after_a_rejection_is_a_new_message(world: PinWorld) -> None:
    await world.first_used()
    [asked] = await world.after(SOURCE, KILLER, LAX)
    await world.pinning.reject(proposed(asked).proposal, ADMIN)
    await world.hear()
    [new] = await world.after(SOURCE, KILLER, LAXER)
    assert (new.edits, proposed(new).state) == (None, OPEN)


async def test_nobody_decides_twice_or_what_is_not_there(world: PinWorld) -> None:
    await world.first_used()
    [asked] = await world.after(SOURCE, KILLER, LAX)
    proposal = proposed(asked).proposal
    assert await world.pinning.approve(proposal, ADMIN) is Decided.DONE
    assert await world.pinning.approve(proposal, ADMIN) is Decided.PAST
    assert await world.pinning.reject(proposal, ADMIN) is Decided.PAST
    assert await world.pinning.approve(99, ADMIN) is Decided.GONE


async def test_what_was_rejected_can_be_approved_as_long_as_the_file_says_it(world: PinWorld) -> None:
    await world.first_used()
    [asked] = await world.after(SOURCE, KILLER, LAX)
    first = proposed(asked).proposal
    await world.pinning.reject(first, ADMIN)
    assert await world.pinning.reject(first, ADMIN) is Decided.PAST
    await world.after(SOURCE, KILLER, LAXER)
    assert await world.pinning.approve(first, ADMIN) is Decided.PAST
    second = (await world.proposal()).id
    await world.pinning.reject(second, ADMIN)
    assert await world.pinning.approve(second, ADMIN) is Decided.DONE
    await world.pinning.enforce()
    assert world.max_age == 48 * HOUR


# ── what goes, and what comes ─────────────────────────────────────────────────────────────────────


async def test_an_entry_that_vanishes_stays_in_force_until_its_removal_is_approved(world: PinWorld) -> None:
    await world.first_used()
    [asked] = await world.after(SOURCE, KILLER)
    assert proposed(asked).is_gone
    assert world.names == ["gateway", "nightly"]
    await world.pinning.approve(proposed(asked).proposal, ADMIN)
    await world.pinning.enforce()
    assert world.names == ["gateway"]
    [answered] = await world.hear()
    assert (answered.edits, proposed(answered).is_gone) == (asked.id, True)


async def test_a_rename_is_a_removal_and_a_new_entry(world: PinWorld) -> None:
    """The new one is in force, and so is the old one until somebody has agreed."""
    await world.first_used()
    messages = await world.after(SOURCE, KILLER, STRICT.replace("nightly", "daily"))
    first = [m.notice for m in messages if isinstance(m.notice, FirstUseNotice)]
    assert [entry.name for notice in first for entry in notice.entries] == ["daily"]
    [gone] = [m.notice for m in messages if isinstance(m.notice, ProposalNotice)]
    assert (gone.name, gone.is_gone) == ("nightly", True)
    assert world.names == ["gateway", "nightly", "daily"]


async def test_a_new_workflow_that_runs_a_program_waits_for_approval(world: PinWorld) -> None:
    """Nobody plants a command by editing a file."""
    await world.first_used()
    [asked] = await world.after(WATCHLIST, COMMAND.format(program="/bin/true"))
    assert (proposed(asked).name, proposed(asked).is_new) == ("tested", True)
    assert "tested" not in world.names
    await world.pinning.approve(proposed(asked).proposal, ADMIN)
    await world.pinning.enforce()
    assert "tested" in world.names


@pytest.mark.parametrize(("length", "has_more"), [(50_000, False), (70_000, True)], ids=["much", "too much"])
async def test_all_that_is_run_is_shown_or_it_cannot_be_approved(
    world: PinWorld, length: int, has_more: bool
) -> None:
    """Nothing is planted where nobody looks."""
    await world.first_used()
    argv = f'argv = ["/bin/sh", "-c", "{"x" * length}evil"]\n'
    [asked] = await world.after(WATCHLIST, '[killers.long]\nkind = "command"\n', argv)
    notice = proposed(asked)
    shown = "".join(change.after.strip("…") for change in notice.changes)
    assert (notice.has_more, "evil" in shown) == (has_more, not has_more)


async def test_a_new_source_has_nothing_stopped_before_it_is_approved(world: PinWorld) -> None:
    """Not by a killer that was approved for others either."""
    await world.first_used()
    source = OTHER_SOURCE.format(path="other.jsonl") + 'killer = "stopper"\n'
    [asked] = await world.after(WATCHLIST, source)
    assert (proposed(asked).name, proposed(asked).is_new) == ("other", True)
    assert "other" not in world.names
    await world.approve("other")
    assert killer_of(world, "other") is not None


async def test_a_source_whose_killer_waits_for_approval_is_observed_and_that_is_told(world: PinWorld) -> None:
    """It is told of the source until the killer is approved, and then no longer."""
    await world.first_used()
    source = OTHER_SOURCE.format(path="other.jsonl") + 'killer = "harsh"\n'
    messages = await world.after(WATCHLIST, source, KILLER.replace("stopper", "harsh"))
    asked = [(notice.name, notice.missing_killer) for notice in map(proposed, messages)]
    assert asked == [("harsh", None), ("other", "harsh")]
    await world.approve("other")
    assert killer_of(world, "other") is None
    [answered] = await world.hear()
    assert proposed(answered).missing_killer == "harsh"
    await world.approve("harsh")
    assert killer_of(world, "other") is not None
    assert [proposed(message).name for message in await world.hear()] == ["harsh"]


async def test_a_killer_that_is_renamed_is_asked_before_its_source_and_its_end_last(world: PinWorld) -> None:
    """What an approval changes about the others is edited into their messages."""
    await world.first_used()
    messages = await world.after(*(table.replace("stopper", "other") for table in (SOURCE, KILLER, STRICT)))
    new, source, gone = map(proposed, messages)
    assert (new.name, source.name, gone.name) == ("other", "gateway", "stopper")
    assert [(each.field, each.mark) for each in source.changes] == [("killer", Mark.LOOSER)]
    assert (source.missing_killer, gone.used_by) == ("other", ((Kind.SOURCE, "gateway"),))
    await world.approve("other")
    [_, again] = await world.hear()
    assert (again.edits, proposed(again).missing_killer) == (messages[1].id, None)
    assert [each.mark for each in proposed(again).changes] == [Mark.DIFFERENT]
    await world.approve("gateway")
    [_, again] = await world.hear()
    assert (again.edits, proposed(again).name, proposed(again).used_by) == (messages[2].id, "stopper", ())
    assert killer_of(world) is not None


async def test_the_end_of_a_killer_tells_who_uses_it(world: PinWorld) -> None:
    hard = KILLER.replace("stopper", "hard")
    await world.first_used(SOURCE, KILLER, 'then = "hard"\n', hard)
    messages = await world.after(SOURCE.replace("stopper", "hard"), hard)
    gone = {notice.name: notice for notice in map(proposed, messages)}["stopper"]
    assert gone.used_by == ((Kind.SOURCE, "gateway"),)
    messages = await world.after(SOURCE, KILLER)
    gone = {notice.name: notice for notice in map(proposed, messages)}["hard"]
    assert gone.used_by == ((Kind.KILLER, "stopper"),)


async def test_a_killer_that_is_only_rehearsed_needs_no_approval(world: PinWorld) -> None:
    await world.first_used()
    [message] = await world.after(WATCHLIST, '\n[killers.rehearsed]\nkind = "dry_run"\n')
    assert isinstance(message.notice, FirstUseNotice)


async def test_a_new_source_gets_none_of_the_files_of_another(world: PinWorld) -> None:
    """Though it stands before it in the file."""
    await world.first_used()
    (world.folder / "calls.jsonl").write_text("")
    await world.after(OTHER_SOURCE.format(path="*.jsonl"), WATCHLIST)
    found = {
        name: [batch.path for batch in watched.source.read_new({}, world.clock.now())]
        for name, watched in world.watch.sources().items()
    }
    assert found == {"gateway": [f"{world.folder}/calls.jsonl"], "other": []}


async def test_what_nobody_has_approved_goes_with_the_file_as_it_came(world: PinWorld) -> None:
    """And is told, as it was told when it came."""
    await world.first_used()
    await world.after(WATCHLIST, OTHER_SOURCE.format(path="other.jsonl"))
    assert world.names == ["gateway", "other", "nightly"]
    [told] = await world.after(WATCHLIST)
    assert told.notice == LetGoNotice(entries=(Pinned(kind=Kind.SOURCE, name="other"),))
    assert world.names == ["gateway", "nightly"]
    assert await world.look() == []


async def test_what_is_asked_of_what_goes_with_the_file_is_taken_back(world: PinWorld) -> None:
    await world.first_used()
    await world.after(WATCHLIST, LAX.replace("nightly", "weekly"))
    [asked] = await world.after(WATCHLIST, LAXER.replace("nightly", "weekly"))
    let_go, taken_back = await world.after(WATCHLIST)
    assert isinstance(let_go.notice, LetGoNotice)
    assert (taken_back.edits, proposed(taken_back).state, proposed(taken_back).is_new) == (
        asked.id,
        WITHDRAWN,
        True,
    )


async def test_sources_that_stay_as_they_are_are_not_built_anew(world: PinWorld) -> None:
    await world.first_used()
    before = world.watch.sources()
    await world.after(SOURCE, KILLER, LAX)
    await world.approve("nightly")
    assert world.max_age == 24 * HOUR
    assert world.watch.sources() is before


async def test_a_list_that_is_edited_in_place_under_its_old_time_is_read_again(world: PinWorld) -> None:
    """As who would have it unnoticed does, with as many bytes."""
    await world.first_used()
    file = world.folder / "loopwarden.toml"
    seen = file.stat()
    file.write_text(WATCHLIST.replace("30m", "59m"))
    os.utime(file, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    [asked] = await world.look()
    assert proposed(asked).name == "nightly"


async def test_a_killer_cannot_be_disarmed_by_an_edit(world: PinWorld) -> None:
    await world.first_used()
    [asked] = await world.after(SOURCE, '\n[killers.stopper]\nkind = "dry_run"\n', STRICT)
    assert proposed(asked).changes[0].mark is Mark.LOOSER
    assert not world.watch.sources()["gateway"].is_dry_run
    await world.pinning.approve(proposed(asked).proposal, ADMIN)
    await world.pinning.enforce()
    assert world.watch.sources()["gateway"].is_dry_run


async def test_steps_that_were_approved_one_by_one_may_lead_in_a_circle(world: PinWorld) -> None:
    """The file never did; each killer goes as far as it can."""
    other = KILLER.replace("stopper", "other")
    await world.first_used(SOURCE, KILLER, 'then = "other"\n', other)
    messages = await world.after(SOURCE, KILLER, other, 'then = "stopper"\n')
    asked = {proposed(message).name: proposed(message).proposal for message in messages}
    await world.pinning.approve(asked["other"], ADMIN)
    await world.pinning.enforce()
    assert world.watch.sources()["gateway"].has_other_step


# ── what it refers to ─────────────────────────────────────────────────────────────────────────────


async def test_a_program_that_is_written_over_is_a_change(world: PinWorld) -> None:
    program = world.folder / "check.sh"
    program.write_text("exit 1\n")
    await world.first_used(COMMAND.format(program="./check.sh"))
    before = world.watch.workflows()["tested"]
    program.write_text("exit 0\n")
    [asked] = await world.look()
    assert [change.field for change in proposed(asked).changes] == [f"content of {program}"]
    assert world.watch.workflows()["tested"] == before
    program.write_text("exit 1\n")
    [taken_back] = await world.look()
    assert proposed(taken_back).state is WITHDRAWN


# ── what cannot be read ───────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("content", ["[", None])
async def test_what_was_approved_stays_in_force_while_the_file_cannot_be_used(
    world: PinWorld, content: str | None
) -> None:
    """The chat is told once, and when it can be again; a restart changes nothing."""
    await world.first_used()
    world.write(content or "")
    if content is None:
        (world.folder / "loopwarden.toml").unlink()
    [told] = await world.look()
    assert isinstance(told.notice, WatchlistNotice)
    assert told.notice.error
    assert await world.look() == []
    world = await world.restarted()
    assert world.names == ["gateway", "nightly"]
    assert [message.notice for message in await world.hear()] == [told.notice]
    [again] = await world.after(WATCHLIST)
    assert (again.notice, again.edits) == (WatchlistNotice(error=None), told.id)


async def test_a_file_that_is_wrong_again_and_again_is_told_in_one_message_an_hour(world: PinWorld) -> None:
    await world.first_used()
    [told] = await world.after("[")
    for content in ("[[", "=", "a"):
        assert [message.edits for message in await world.after(content)] == [told.id]
    world.clock.go_on(HOUR)
    assert [message.edits for message in await world.after("[")] == [None]


async def test_approval_works_while_the_file_cannot_be_used(world: PinWorld) -> None:
    await world.first_used()
    [asked] = await world.after(SOURCE, KILLER, LAX)
    await world.after("[")
    assert await world.pinning.approve(proposed(asked).proposal, ADMIN) is Decided.DONE
    await world.look()
    assert world.max_age == 24 * HOUR


class HangingFile(WatchlistFile):
    """Lies where reads do not come back until the test is over."""

    is_over = threading.Event()

    def written(self) -> Sequence[Entry] | None:
        assert self.is_over.wait(timeout=60)
        return super().written()


async def test_what_was_approved_is_in_force_though_the_file_does_not_come_back(world: PinWorld) -> None:
    """Also at start; and it is told."""
    await world.first_used()
    watch = HangingFile(world.folder / "loopwarden.toml", OnDetection.STOP)
    hung = replace(world)
    hung.watch, hung.pinning = watch, replace(hung.pinning, watch=watch, patience=0.0)
    try:
        await hung.pinning.begin()
        assert hung.names == ["gateway", "nightly"]
        [told] = await hung.hear()
        assert isinstance(told.notice, WatchlistNotice)
        assert "has not come back" in (told.notice.error or "")
    finally:
        watch.is_over.set()


async def test_changed_prices_are_in_force_without_approval(world: PinWorld) -> None:
    await world.first_used()
    [told] = await world.after(WATCHLIST, '\n[prices]\n"gpt-*" = { input = 1, output = 9 }\n')
    assert told.notice == PricesNotice()
    assert list(world.watch.sources()["gateway"].prices.models) == ["gpt-*"]
    assert await world.look() == []


async def test_prices_that_are_read_for_the_first_time_have_not_changed(world: PinWorld) -> None:
    """The file was wrong when the bot was started."""
    await world.first_used()
    world.write("[")
    world = await world.restarted()
    await world.hear()
    told = await world.after(WATCHLIST, '\n[prices]\n"gpt-*" = { input = 1, output = 9 }\n')
    assert [message.notice for message in told] == [WatchlistNotice(error=None)]
    assert list(world.watch.sources()["gateway"].prices.models) == ["gpt-*"]


# ── other hands in the database ───────────────────────────────────────────────────────────────────


async def test_a_pin_that_was_altered_is_not_used_and_told_once(world: PinWorld) -> None:
    """What was approved before it is in force, and what is in the file is asked."""
    await world.first_used()
    [asked] = await world.after(SOURCE, KILLER, LAX)
    await world.pinning.approve(proposed(asked).proposal, ADMIN)
    await world.look()
    alter(world, "UPDATE pin SET entry = replace(entry, '86400', '999999') WHERE how = 'approved'")
    world = await world.restarted()
    assert world.max_age == 0.5 * HOUR
    told = [message.notice for message in await world.hear()]
    assert AlteredNotice(kind=Kind.WORKFLOW, name="nightly") in told
    assert [notice.state for notice in told if isinstance(notice, ProposalNotice)] == [OPEN]
    assert await world.look() == []


async def test_a_pin_that_cannot_be_put_in_force_does_not_keep_the_bot_from_starting(world: PinWorld) -> None:
    await world.first_used()
    rows = {pin.name: pin.entry or "" for pin in await world.store.reading.pins.all()}
    for kind, name, good, bad in (
        (Kind.SOURCE, "gateway", '"format":"gateway"', '"format":"nope"'),
        (Kind.KILLER, "stopper", "sleep 1000", "("),
    ):
        entry = rows[name].replace(good, bad)
        added = Pin(kind=kind, name=name, entry=entry, hash=hash_of(entry), how=How.APPROVED, by=ADMIN, at=1)
        async with world.store.transaction() as tables:
            await tables.pins.add(added)
    world = await world.restarted()
    assert killer_of(world) is not None
    told = [message.notice for message in await world.hear()]
    assert told == [
        AlteredNotice(kind=Kind.SOURCE, name="gateway"),
        AlteredNotice(kind=Kind.KILLER, name="stopper"),
    ]


async def test_a_proposal_that_was_altered_cannot_be_approved(world: PinWorld) -> None:
    await world.first_used()
    [asked] = await world.after(SOURCE, KILLER, LAX)
    alter(world, "UPDATE proposal SET entry = replace(entry, '86400', '999999')")
    assert await world.pinning.approve(proposed(asked).proposal, ADMIN) is Decided.GONE
    await world.look()
    assert world.max_age == 0.5 * HOUR


def alter(world: PinWorld, sql: str) -> None:
    with closing(sqlite3.connect(world.folder / FILE_NAME)) as database:
        database.execute(sql)
        database.commit()

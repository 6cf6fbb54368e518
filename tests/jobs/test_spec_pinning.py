"""What is enforced is what a person has approved, whatever the watch list says."""

import sqlite3
import threading
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from bot.watching import WatchlistFile
from jobs.alert.notice import PricesNotice, WatchlistNotice
from jobs.alert.pin_notice import AlteredNotice, FirstUseNotice, ProposalNotice
from jobs.pinning.change import Mark
from jobs.pinning.kind import How, Kind, ProposalState
from jobs.pinning.pin import Entry
from jobs.ports import Killer
from jobs.spec_pinning import Decided
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
        (Kind.SOURCE, "gateway"),
        (Kind.KILLER, "stopper"),
        (Kind.WORKFLOW, "nightly"),
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
    assert (asked_again.edits, proposed(asked_again).state) == (None, OPEN)


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
    assert await world.pinning.reject(proposal, ADMIN) is Decided.DONE
    assert await world.pinning.approve(proposal, ADMIN) is Decided.PAST
    assert await world.pinning.approve(99, ADMIN) is Decided.GONE
    await world.pinning.enforce()
    assert world.max_age == 0.5 * HOUR


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


async def test_a_source_whose_killer_waits_for_approval_is_observed(world: PinWorld) -> None:
    await world.first_used()
    source = OTHER_SOURCE.format(path="other.jsonl") + 'killer = "harsh"\n'
    messages = await world.after(WATCHLIST, source, KILLER.replace("stopper", "harsh"))
    assert [type(message.notice) for message in messages] == [FirstUseNotice, ProposalNotice]
    assert killer_of(world, "other") is None
    await world.pinning.approve(proposed(messages[1]).proposal, ADMIN)
    await world.pinning.enforce()
    assert killer_of(world, "other") is not None


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
    assert [message.notice for message in await world.after(WATCHLIST)] == [WatchlistNotice(error=None)]


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
    hung.watch, hung.pinning = watch, replace(world.pinning, watch=watch, patience=0.0)
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


async def test_a_proposal_that_was_altered_cannot_be_approved(world: PinWorld) -> None:
    await world.first_used()
    [asked] = await world.after(SOURCE, KILLER, LAX)
    alter(world, "UPDATE proposal SET entry = replace(entry, '86400', '999999')")
    assert await world.pinning.approve(proposed(asked).proposal, ADMIN) is Decided.GONE
    await world.look()
    assert world.max_age == 0.5 * HOUR


async def test_a_database_that_is_begun_anew_is_given_what_is_in_force(world: PinWorld) -> None:
    """The file is not trusted at first sight a second time."""
    await world.first_used()
    alter(world, "DELETE FROM pin")
    [asked] = await world.after(SOURCE, KILLER, LAX)
    assert proposed(asked).state is OPEN
    assert world.max_age == 0.5 * HOUR
    world = await world.restarted()
    assert world.max_age == 0.5 * HOUR


def alter(world: PinWorld, sql: str) -> None:
    with closing(sqlite3.connect(world.folder / FILE_NAME)) as database:
        database.execute(sql)
        database.commit()

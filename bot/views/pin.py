"""Pins: what was pinned at first sight, what the file says otherwise and the buttons to decide it, what was altered."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, assert_never
from zoneinfo import ZoneInfo

from aiogram.types import InlineKeyboardButton
from aiogram.utils.formatting import Bold, Code, Text

from bot.callbacks import PinButton, PinVerb
from bot.redaction import MASK
from bot.views.change import change_line, marked, not_pinned_line, said_line
from bot.views.measure import amount, moment
from bot.views.screen import Screen, lines, screen
from bot.views.text import flat, name
from jobs.alert.pin_notice import (
    AlteredNotice,
    FirstUseNotice,
    LetGoNotice,
    Pinned,
    ProposalNotice,
    ProposalsNotice,
)
from jobs.pinning.change import Mark
from jobs.pinning.kind import How, Kind, ProposalState

_PAGE: Final = 2800
"""UTF-16 units of lines on one page; with what stands above and below them it is one message."""
_ON_A_PAGE: Final = 20
"""Lines; a message has 100 entities at most, and each of these has up to five."""
_LOOSE_SHOWN: Final = 8
"""Entries of which it is said what is not pinned: with the names of all there is room in one message for so many."""
_LOOSE: Final = 160
"""UTF-16 units of that."""
_MASKED: Final = (
    f"{MASK} is what looks like a secret, but may hide anything: look into the file before you approve."
)


# ── what the file says otherwise ──────────────────────────────────────────────────────────────────


def proposal(notice: ProposalNotice, now: float, zone: ZoneInfo, page: int = 0) -> Screen:
    """Render what the file says otherwise, or what became of that. Only the last page has the button that approves.

    What was rejected keeps it: the finger may have slipped, and the file still says so.
    """
    pages = pages_of(rows_of(notice))
    since = "" if notice.in_force_since is None else f" since {moment(notice.in_force_since, now, zone)}"
    is_open = notice.state is ProposalState.OPEN
    title = _title(notice) if is_open else _decided(notice)
    stands = _before(notice, since) if is_open else _after(notice, since)
    if notice.state in {ProposalState.APPROVED, ProposalState.WITHDRAWN}:
        return screen(lines(title, stands, *_record(notice, pages)))
    page = min(page, len(pages) - 1)
    is_last = page == len(pages) - 1
    return screen(
        lines(
            Text(title, f" ({page + 1}/{len(pages)})" if len(pages) > 1 else ""),
            stands,
            _sums(notice) if len(pages) > 1 else None,
            *pages[page],
            _MASKED if any(MASK in row.render()[0] for row in pages[page]) else None,
            _on_approval(notice, is_last=is_last),
        ),
        *_turns(notice.proposal, page, len(pages)),
        *_answers(notice, may_approve=is_last and not _is_too_much(notice)),
    )


def _on_approval(notice: ProposalNotice, *, is_last: bool) -> str | None:
    if _is_too_much(notice):
        return "There is more than can be shown, so it cannot be approved: change less at once, or make it smaller."
    return None if is_last else "Approve stands on the last page."


def _is_too_much(notice: ProposalNotice) -> bool:
    # What is gone has nothing in it that could be overlooked.
    return notice.has_more and not notice.is_gone


def proposals(notice: ProposalsNotice) -> Screen:
    """Render that the file differs in so many entries that each is shown by /audit only."""
    parts = [part for kind, each in notice.entries for part in (", ", f"{kind} ", name(each))][1:]
    more = notice.count - len(notice.entries)
    return screen(
        lines(
            Text("📌 ", Bold(f"The file differs: {amount(notice.count)} entries")),
            Text(*parts, f" and {more} more" if more else ""),
            "What was pinned is in force, and stays so until an admin approves what the file says: /audit shows each.",
        )
    )


def rows_of(notice: ProposalNotice) -> list[Text]:
    """Return a line for each killer or user of one that counts, each change, and each thing that no pin holds still."""
    changed = said_line if notice.is_new else change_line
    return [*_links(notice), *map(changed, notice.changes), *map(not_pinned_line, notice.not_pinned)]


def _links(notice: ProposalNotice) -> Iterator[Text]:
    if notice.missing_killer is not None:
        after = "no other killer follows a stop that did not hold"
        without = "this source is only observed" if notice.kind is Kind.SOURCE else after
        killer = name(notice.missing_killer)
        yield Text("⚠️ killer ", killer, f" is not in force: until it is, {without}")
    for kind, user in notice.used_by:
        yield Text(f"⚠️ {kind} ", name(user), " uses it")


def pages_of(rows: Sequence[Text]) -> list[Sequence[Text]]:
    """Share lines out to pages, of which there is one at least; no line is cut."""
    pages: list[list[Text]] = [[]]
    size = 0
    for row in rows:
        if pages[-1] and (size + len(row) > _PAGE or len(pages[-1]) == _ON_A_PAGE):
            pages.append([])
            size = 0
        pages[-1].append(row)
        size += len(row) + 1
    return list(pages)


def _title(notice: ProposalNotice) -> Text:
    which = _which(notice)
    if notice.is_gone:
        return Text("📌 ", Bold("No longer in the file: ", which))
    return Text("📌 ", Bold("New in the file: " if notice.is_new else "The file differs: ", which))


def _before(notice: ProposalNotice, since: str) -> str:
    if notice.is_new:
        return "It is not in force until an admin approves it."
    what = "its removal" if notice.is_gone else "this"
    return f"What was pinned is in force{since}, and stays so until an admin approves {what}:"


def _decided(notice: ProposalNotice) -> Text:
    which, by = _which(notice), "" if notice.decided_by is None else f" by user {notice.decided_by}"
    match notice.state:
        case ProposalState.APPROVED:
            return Text("✅ ", Bold("Removed: " if notice.is_gone else "Approved: ", which), by)
        case ProposalState.REJECTED:
            return Text("🚫 ", Bold("Rejected: ", which), by)
        case ProposalState.OPEN | ProposalState.WITHDRAWN:
            return Text("↩️ ", Bold("Taken back: ", which))
        case _:
            assert_never(notice.state)


def _after(notice: ProposalNotice, since: str) -> str:
    match notice.state:
        case ProposalState.APPROVED:
            return "It is no longer in force." if notice.is_gone else "It is in force now."
        case ProposalState.REJECTED if notice.is_new:
            return "It is not in force, though the file has it."
        case ProposalState.REJECTED if notice.is_gone:
            return f"What was pinned stays in force{since}, though the file does not have it."
        case ProposalState.REJECTED:
            return f"What was pinned stays in force{since}, and the file differs."
        case _ if notice.is_new:
            return "The file does not have it any more."
        case _:
            return f"The file says again what is in force{since}."


def _record(notice: ProposalNotice, pages: Sequence[Sequence[Text]]) -> Iterator[Text | str]:
    if notice.state is ProposalState.WITHDRAWN:
        return
    yield from pages[0]
    if more := sum(map(len, pages[1:])):
        yield f"… and {more} more"


def _sums(notice: ProposalNotice) -> Text | None:
    """Count what the changes do: looser ones come first, and are out of sight where Approve stands."""
    if notice.is_new:
        return None
    marks = Counter(change.mark for change in notice.changes)
    parts: list[Text | str] = []
    for mark in (Mark.LOOSER, Mark.DIFFERENT, Mark.STRICTER):
        if marks[mark]:
            parts += [", " if parts else "In all ", f"{marks[mark]} ", marked(mark)]
    return Text(*parts) if parts else None


def _which(of: ProposalNotice | AlteredNotice | Pinned) -> Text:
    return Text(f"{of.kind} ", name(of.name))


# ── buttons ───────────────────────────────────────────────────────────────────────────────────────


def _turns(proposal_id: int, page: int, pages: int) -> list[list[InlineKeyboardButton]]:
    if pages == 1:
        return []
    turns = [("Back", page - 1), ("More", page + 1)]
    return [
        [
            _button(f"{word} {to + 1}/{pages}", PinVerb.PAGE, proposal_id, to)
            for word, to in turns
            if 0 <= to < pages
        ]
    ]


def _answers(notice: ProposalNotice, *, may_approve: bool) -> list[list[InlineKeyboardButton]]:
    is_looser = any(change.mark is Mark.LOOSER for change in notice.changes)
    style = "danger" if is_looser else "success"
    approve = _button("Approve", PinVerb.APPROVE, notice.proposal, style=style)
    reject = _button("Reject", PinVerb.REJECT, notice.proposal)
    row = [approve] if may_approve else []
    if notice.state is ProposalState.OPEN:
        row.append(reject)
    return [row] if row else []


def _button(
    label: str, verb: PinVerb, proposal_id: int, page: int = 0, style: str | None = None
) -> InlineKeyboardButton:
    data = PinButton(verb=verb, proposal=proposal_id, page=page).pack()
    return InlineKeyboardButton(text=label, callback_data=data, style=style)


# ── what needs no answer ──────────────────────────────────────────────────────────────────────────


def first_use(notice: FirstUseNotice) -> Screen:
    """Render what was pinned at first sight: every name, and then what is not pinned of them."""
    by = "by loopwarden verify" if notice.how is How.FIRST_VERIFY else "as they were found"
    loose = [entry for entry in notice.entries if entry.not_pinned]
    more = len(loose) - _LOOSE_SHOWN
    return screen(
        lines(
            Bold(f"📌 Pinned {by}: {_count(notice.entries)}"),
            "⚠️ What was pinned before is in a database that cannot be read. Nobody has approved what the file says of"
            " these, and what acts on agents or runs a program is not in force until somebody does."
            if notice.is_lost
            else None,
            *(_names(kind, notice.entries) for kind in Kind),
            *map(_loose, loose[:_LOOSE_SHOWN]),
            f"… and {more} more of which not all is pinned" if more > 0 else None,
            "From now on an edit of the watch list changes none of this until an admin approves it here."
            " /audit lists every pin.",
        )
    )


def let_go(notice: LetGoNotice) -> Screen:
    """Render what has gone with the file, for nobody had approved it."""
    return screen(
        lines(
            Bold(f"📌 No longer in the file, nor in force: {_count(notice.entries)}"),
            *(_names(kind, notice.entries) for kind in Kind),
            "Nobody had approved it: it was pinned as it was found, after the bot had looked for the first time.",
        )
    )


def _count(entries: Sequence[Pinned]) -> str:
    return "1 entry" if len(entries) == 1 else f"{amount(len(entries))} entries"


def _names(kind: Kind, entries: Sequence[Pinned]) -> Text | None:
    names = [name(entry.name) for entry in entries if entry.kind is kind]
    parts = [part for each in names for part in (", ", each)][1:]
    return Text(f"{kind.capitalize()}{'s' if len(names) > 1 else ''}: ", *parts) if parts else None


def _loose(entry: Pinned) -> Text:
    return Text("Not pinned of ", _which(entry), ": ", Code(flat("; ".join(entry.not_pinned), _LOOSE)))


def altered(notice: AlteredNotice) -> Screen:
    """Render that a pin is not what was approved."""
    others = f", and {amount(notice.others)} more" if notice.others else ""
    done = "It is not what was approved, and is not used; what was approved before it, if anything was, is in force."
    if notice.is_put_back:
        done = "What was approved stays in force, and was written back."
    return screen(
        lines(
            Text("🚨 ", Bold("A pin was altered in the database: ", _which(notice)), others),
            f"{done} See who can write to the database.",
        )
    )


def past() -> Screen:
    """Answer a press that came too late."""
    return screen(
        Text(
            "Nothing was done: the file has changed again, or this was decided already. /audit shows how things stand."
        )
    )

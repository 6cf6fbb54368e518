"""/audit: every pin, newest first, and before them what the file says otherwise."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, assert_never
from zoneinfo import ZoneInfo

from aiogram.types import InlineKeyboardButton
from aiogram.utils.formatting import Bold, Code, Text

from bot.callbacks import AuditButton, PinButton, PinVerb
from bot.views.differing import Differing
from bot.views.measure import moment
from bot.views.screen import Screen, lines, screen
from bot.views.text import flat, name
from jobs.pinning.audit import Audited
from jobs.pinning.change import Change
from jobs.pinning.kind import How
from jobs.pinning.pin import Pin

SHOWN: Final = 8
"""Pins on a page, and entries that differ above them: as many as fit into one message whatever they are called."""
_CHANGES: Final = 3
_FIELD: Final = 40
_HASH: Final = 8
_IN_A_ROW: Final = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditPage:
    """Some pins, newest first."""

    number: int
    """From 0."""
    pins: Sequence[Audited]
    has_older: bool
    differing: Sequence[Differing] = ()
    """Some of the entries that differ, those first that wait for an answer."""
    more_differing: int = 0
    """How many are on older pages."""


def audit(page: AuditPage, now: float, zone: ZoneInfo) -> Screen:
    """Render a page of what was pinned."""
    rows = [line for pin in page.pins for line in _row(pin, now, zone)]
    return screen(
        lines(
            *_differing(page),
            Bold("Pins"),
            *(rows or ["None so far." if page.number == 0 else "No older ones."]),
        ),
        *_shows(page.differing),
        *_turns(page),
    )


def _differing(page: AuditPage) -> list[Text | str]:
    if not page.differing:
        return []
    shown = [
        Text(f"#{each.proposal.id} {each.proposal.kind} ", name(each.proposal.name), f": {each.words}")
        for each in page.differing
    ]
    more = page.more_differing
    return [Bold("Not as in the file"), *shown, *([f"… and {more} more: Older"] if more else [])]


def _row(found: Audited, now: float, zone: ZoneInfo) -> list[Text | str | None]:
    pin = found.pin
    return [
        Text(f"{moment(pin.at, now, zone)} {pin.kind} ", name(pin.name), f": {_how(pin)}"),
        Text("    ", _hash(found.before), " → ", _hash(pin), *_changed(found.changes)),
        "    🚨 altered since, and not used" if found.is_altered else None,
    ]


def _how(pin: Pin) -> str:
    what = "removal approved" if pin.entry is None else "approved"
    match pin.how:
        case How.FIRST_USE:
            return "pinned as it was found"
        case How.FIRST_VERIFY:
            return "pinned by loopwarden verify"
        case How.APPROVED:
            return f"{what} by loopwarden approve" if pin.by is None else f"{what} by user {pin.by}"
        case _:
            assert_never(pin.how)


def _hash(pin: Pin | None) -> Text | str:
    if pin is None or pin.entry is None:
        return "nothing"
    return Code(flat(pin.hash[:_HASH], _HASH))


def _changed(changes: Sequence[Change]) -> list[Text | str]:
    parts: list[Text | str] = []
    for change in changes[:_CHANGES]:
        parts += [", " if parts else ": ", Code(flat(change.field, _FIELD)), f" {change.mark}"]
    more = len(changes) - _CHANGES
    return [*parts, f" and {more} more"] if more > 0 else parts


def _shows(found: Sequence[Differing]) -> list[list[InlineKeyboardButton]]:
    buttons = [
        InlineKeyboardButton(
            text=f"Show #{each.proposal.id}",
            callback_data=PinButton(verb=PinVerb.SHOW, proposal=each.proposal.id).pack(),
        )
        for each in found
    ]
    return [buttons[start : start + _IN_A_ROW] for start in range(0, len(buttons), _IN_A_ROW)]


def _turns(page: AuditPage) -> list[list[InlineKeyboardButton]]:
    turns = [("Newer", page.number - 1, page.number > 0), ("Older", page.number + 1, page.has_older)]
    row = [
        InlineKeyboardButton(text=label, callback_data=AuditButton(page=to).pack())
        for label, to, is_there in turns
        if is_there
    ]
    return [row] if row else []

"""Typed data of every button, at most 64 bytes: a verb and an id; whatever else counts is in the database."""

from enum import StrEnum

from aiogram.filters.callback_data import CallbackData


class IncidentVerb(StrEnum):
    """What a button under an alert does."""

    KILL = "kill"
    SNOOZE_15 = "z15"
    SNOOZE_60 = "z60"
    DETAILS = "more"


class IncidentButton(CallbackData, prefix="i"):
    """A button about one incident."""

    verb: IncidentVerb
    incident: int


class KillButton(CallbackData, prefix="k"):
    """Opens the confirmation of a stop."""

    session: int


class ConfirmButton(CallbackData, prefix="c"):
    """Answers a confirmation; the nonce is valid once."""

    nonce: str
    is_yes: bool

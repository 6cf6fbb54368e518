"""Typed data of every button, at most 64 bytes: a verb and an id; whatever else counts is in the database."""

from enum import StrEnum
from typing import Annotated

from aiogram.filters.callback_data import CallbackData
from pydantic import Field

RowId = Annotated[int, Field(ge=1, lt=2**63)]


class IncidentVerb(StrEnum):
    """What a button under an alert does."""

    KILL = "kill"
    SNOOZE_15 = "z15"
    SNOOZE_60 = "z60"
    DETAILS = "more"


class IncidentButton(CallbackData, prefix="i"):
    """A button about one incident."""

    verb: IncidentVerb
    incident: RowId


class KillButton(CallbackData, prefix="k"):
    """Opens the confirmation of a stop."""

    session: RowId


class ConfirmButton(CallbackData, prefix="c"):
    """Answers a confirmation; the nonce is valid once."""

    nonce: str
    is_yes: bool

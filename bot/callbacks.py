"""Typed data of every button, at most 64 bytes: a verb and an id; whatever else counts is in the database."""

from enum import StrEnum
from typing import Annotated

from aiogram.filters.callback_data import CallbackData
from pydantic import Field

from jobs.verification.verdict import Outcome

RowId = Annotated[int, Field(ge=1, lt=2**63)]
PageNumber = Annotated[int, Field(ge=0, lt=2**31)]
"""From 0."""


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


class RunVerb(StrEnum):
    """What a button under an alert of a run does."""

    RECHECK = "again"
    HISTORY = "hist"
    SILENCE_1 = "s1"
    SILENCE_24 = "s24"


class RunButton(CallbackData, prefix="r"):
    """A button about one run."""

    verb: RunVerb
    run: RowId


class Turn(StrEnum):
    """Which way a page is turned."""

    OLDER = "o"
    NEWER = "n"


class HistoryButton(CallbackData, prefix="h"):
    """Shows a page of the history in the message of the button."""

    workflow: RowId | None = None
    """None: of all."""
    outcome: Outcome | None = None
    turn: Turn = Turn.OLDER
    past: RowId | None = None
    """The verdict that the page begins behind; None: the newest page."""


class ChoiceButton(CallbackData, prefix="w"):
    """Shows the workflows whose history can be chosen, those of an outcome if one is."""

    outcome: Outcome | None = None


class PinVerb(StrEnum):
    """What a button under a proposal does."""

    APPROVE = "yes"
    REJECT = "no"
    PAGE = "page"
    """Shows that page of it in the message of the button."""
    SHOW = "show"
    """Shows it in a message of its own."""


class PinButton(CallbackData, prefix="p"):
    """A button about one proposal."""

    verb: PinVerb
    proposal: RowId
    page: PageNumber = 0


class AuditButton(CallbackData, prefix="a"):
    """Shows a page of all pins in the message of the button."""

    page: PageNumber = 0


class DigestButton(CallbackData, prefix="d"):
    """Shows a page of a digest in the message of the button."""

    digest: RowId
    page: Annotated[int, Field(ge=1, lt=2**31)]


class KillButton(CallbackData, prefix="k"):
    """Opens the confirmation of a stop."""

    session: RowId


class ConfirmButton(CallbackData, prefix="c"):
    """Answers a confirmation; the nonce is valid once."""

    nonce: str
    is_yes: bool

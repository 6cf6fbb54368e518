"""A message on its way to the chat."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

import msgspec

from jobs.alert.notice import Notice
from jobs.thrash.incident import Incident

NOTICE: Final = "notice"
"""The kind of a message whose body is a notice."""


class Mode(StrEnum):
    """What becomes of a message."""

    SEND = "send"
    """A new message; with a subject, the one that later messages of that subject edit or answer."""
    EDIT = "edit"
    """The text takes the place of an earlier one."""
    REPLY = "reply"
    """A new message that answers an earlier one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A message to be sent: `kind` and `body` (JSON) are what the notifier renders."""

    kind: str
    body: bytes
    mode: Mode = Mode.SEND
    subject: str | None = None
    """What the message is about, such as `incident:7`."""
    target_message: int | None = None
    """The chat's id of the message to edit or answer, where there is no subject."""
    chat: str | None = None
    """`<chat id>` or `<chat id>/<topic id>`; None is the configured chat."""
    silent: bool = False
    urgent: bool = False
    """Sent before whatever else waits for its chat: what is about a stop, and the first words after having been away."""


def told(
    notice: Notice,
    mode: Mode = Mode.SEND,
    *,
    about: Incident | None = None,
    kind: str = "incident",
    silent: bool = False,
    urgent: bool = False,
) -> Outgoing:
    """Return the message that carries a notice to the configured chat; `kind` tells an incident's messages apart."""
    return Outgoing(
        kind=NOTICE,
        body=msgspec.json.encode(notice),
        mode=mode,
        subject=None if about is None else f"{kind}:{about.id}",
        silent=silent,
        urgent=urgent,
    )

"""A message on its way to the chat."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from jobs.thrash.incident import Incident

NOTICE: Final = "notice"
"""The kind of a message whose body is a notice."""


class Notice(msgspec.Struct, frozen=True, kw_only=True, tag=True, tag_field="notice"):
    """Anything the jobs have to say."""


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
    alarm: bool = False
    """Sent after what is urgent, and before the rest: new incidents, and that the guard itself is out of order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """A message in the outbox, ready to be sent; `target_message` is found already."""

    id: int
    kind: str
    body: str
    mode: Mode
    subject: str | None
    target_message: int | None
    chat: str
    """`<chat id>` or `<chat id>/<topic id>`."""
    silent: int
    urgent: int
    """0, or 1 for an alarm, or 2."""
    attempts: int
    error: str | None
    """What kept it from being sent the last time."""
    created_at: float

    @property
    def chat_id(self) -> int:
        """The chat without its topic."""
        return int(self.chat.partition("/")[0])


def told(
    notice: Notice,
    mode: Mode = Mode.SEND,
    *,
    about: "Incident | None" = None,
    kind: str = "incident",
    silent: bool = False,
    urgent: bool = False,
    alarm: bool = False,
) -> Outgoing:
    """Return the message that carries a notice to the configured chat; `kind` tells an incident's messages apart."""
    return Outgoing(
        kind=NOTICE,
        body=msgspec.json.encode(notice),
        mode=mode,
        subject=None if about is None else f"{kind}:{about.id}",
        silent=silent,
        urgent=urgent,
        alarm=alarm,
    )

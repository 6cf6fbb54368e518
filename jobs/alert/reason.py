"""Is a change of an incident worth telling, and how?"""

from collections.abc import Iterator
from enum import StrEnum

from jobs.alert.notice import AskNotice, IncidentNotice, Outlook, Starter
from jobs.alert.outgoing import Mode, Outgoing, told
from jobs.thrash.incident import Incident, IncidentStatus


class Reason(StrEnum):
    """Why the chat hears of an incident."""

    NEW = "new"
    STATUS = "status"
    SNOOZE = "snooze"
    NUMBERS = "numbers"
    """It goes on, and has cost more."""


def reason_to_notify(before: Incident | None, after: Incident, now: float) -> Reason | None:
    """Say why a change is told; None if it is not: nothing moved, or only numbers did and the incident is snoozed."""
    if before is None:
        return Reason.NEW
    if before.status != after.status:
        return Reason.STATUS
    if before.snoozed_until != after.snoozed_until:
        return Reason.SNOOZE
    if before == after or is_snoozed(after, now):
        return None
    return Reason.NUMBERS


def is_snoozed(incident: Incident, now: float) -> bool:
    """Whether messages about this incident are muted."""
    return incident.snoozed_until is not None and now < incident.snoozed_until


def tellings(
    before: Incident | None, after: Incident, outlook: Outlook, now: float, starter: Starter | None = None
) -> Iterator[Outgoing]:
    """Yield the messages for a change of an incident: the alert or an edit of it, the question or an edit of that."""
    if reason := reason_to_notify(before, after, now):
        notice = IncidentNotice(incident=after, outlook=outlook, starter=starter)
        is_new = reason is Reason.NEW
        yield told(notice, Mode.SEND if is_new else Mode.EDIT, about=after, alarm=is_new)
    if mode := _question(before, after):
        stops_at = max((after.asked_at or now) + outlook.ask_grace, after.snoozed_until or 0)
        question = AskNotice(incident=after, stops_at=stops_at, starter=starter)
        silent = is_snoozed(after, now)
        yield told(question, mode, about=after, kind="question", silent=silent, urgent=mode is Mode.SEND)


def _question(before: Incident | None, after: Incident) -> Mode | None:
    was_asked = before is not None and before.status is IncidentStatus.ASKED
    if not was_asked:
        return Mode.SEND if after.status is IncidentStatus.ASKED else None
    has_moved = before is not None and before.snoozed_until != after.snoozed_until
    return Mode.EDIT if has_moved or after.status is not IncidentStatus.ASKED else None

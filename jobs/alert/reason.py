"""Is a change of an incident worth telling, and how?"""

from enum import StrEnum

from jobs.alert.notice import IncidentNotice, Outlook
from jobs.alert.outgoing import Mode, Outgoing, told
from jobs.thrash.incident import Incident


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


def telling(before: Incident | None, after: Incident, outlook: Outlook, now: float) -> Outgoing | None:
    """Return the message for a change of an incident: the alert, an edit of it, or none."""
    reason = reason_to_notify(before, after, now)
    if reason is None:
        return None
    notice = IncidentNotice(incident=after, outlook=outlook)
    return told(notice, Mode.SEND if reason is Reason.NEW else Mode.EDIT, about=after)

"""From one look at one session: its streak, its incident, and what is to be done."""

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import assert_never

from jobs.thrash.finding import Finding
from jobs.thrash.incident import Incident, IncidentStatus
from jobs.thrash.policy import OnDetection, ThrashPolicy
from jobs.thrash.streak import Ended, Look, Streak, advance


class Action(StrEnum):
    """What a step leads to."""

    ALERT = "alert"
    ASK = "ask"
    STOP = "stop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The session looked at, and what it has used so far."""

    session_id: int
    source: str
    agent: str
    streak: Streak
    calls: int
    newest_ts: float
    tokens: int | None
    cost: int | None = None
    unpriced: int = 0
    currency: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Assessment:
    """What a look leads to."""

    streak: Streak
    ended: Incident | None = None
    """The incident that was open before, as it ended."""
    current: Incident | None = None
    """The incident that was opened (its id is 0) or went on by a step."""
    action: Action | None = None


def assess(
    subject: Subject, look: Look, before: Incident | None, policy: ThrashPolicy, now: float
) -> Assessment:
    """Judge a look at `now`; `before` is the session's incident that is not closed."""
    if before and before.is_being_stopped:
        # What it does now says whether the stop holds (`AgentStop` watches that); it is not a streak.
        newest = look.finding.newest_repeat if look.finding else subject.streak.newest_repeat
        return Assessment(streak=Streak(newest_repeat=newest, pid=look.pid or subject.streak.pid))
    result = advance(subject.streak, look, policy, now)
    ended = end(before, result.ended, now) if before and result.ended else None
    if not result.is_step or look.finding is None:
        return Assessment(streak=result.streak, ended=ended)
    current = (before if ended is None else None) or _opened(subject, look.finding, now)
    current = _counted_in(current, subject, look.finding, result.streak, now)
    action = _decide(current, policy, now)
    # A stop takes the streak with it: whatever comes after has to earn three steps of its own.
    streak = _at_zero(result.streak) if action is Action.STOP else result.streak
    return Assessment(streak=streak, ended=ended, current=_acted(current, action, now), action=action)


def _at_zero(streak: Streak) -> Streak:
    return Streak(newest_repeat=streak.newest_repeat, pid=streak.pid)


def end(incident: Incident, ended: Ended, now: float) -> Incident:
    """Return the incident as it is over."""
    return replace(
        incident,
        status=IncidentStatus.RESOLVED,
        ended=ended,
        closed_at=now,
        updated_at=now,
        snoozed_until=None,
    )


def is_silent(incident: Incident, policy: ThrashPolicy, now: float) -> bool:
    """Whether an incident is over because nothing has been added to it for too long."""
    return not incident.is_being_stopped and now - incident.updated_at > policy.expires


def _opened(subject: Subject, finding: Finding, now: float) -> Incident:
    return Incident(
        id=0,
        session_id=subject.session_id,
        agent=subject.agent,
        source=subject.source,
        opened_at=now,
        updated_at=now,
        first_call=finding.first_call,
        first_ts=finding.first_ts,
        tokens_before=finding.tokens_before,
        cost_before=finding.cost_before,
        kind=finding.kind,
        tool=finding.tool,
        score=finding.score,
        steps=0,
        calls=0,
        newest_ts=subject.newest_ts,
        tokens=None,
    )


def _counted_in(
    incident: Incident, subject: Subject, finding: Finding, streak: Streak, now: float
) -> Incident:
    tokens = None if subject.tokens is None else subject.tokens - (incident.tokens_before or 0)
    return replace(
        incident,
        updated_at=now,
        tool=finding.tool,
        score=finding.score,
        steps=streak.steps,
        # A log that comes late may count fewer calls than the hook before it: of commands that one call ran, say.
        calls=max(subject.calls - incident.first_call + 1, finding.score),
        newest_ts=subject.newest_ts,
        tokens=tokens,
        cost=None if subject.cost is None else subject.cost - (incident.cost_before or 0),
        unpriced=subject.unpriced,
        currency=subject.currency,
    )


def _decide(incident: Incident, policy: ThrashPolicy, now: float) -> Action:
    if incident.steps < policy.kill_after or not incident.is_undecided:
        return Action.ALERT
    match policy.on_detection:
        case OnDetection.OBSERVE:
            return Action.ALERT
        case OnDetection.STOP:
            return Action.STOP
        case OnDetection.ASK if incident.asked_at is None:
            return Action.ASK
        case OnDetection.ASK:
            grace_ends = max(incident.asked_at + policy.ask_grace, incident.snoozed_until or 0)
            return Action.STOP if now >= grace_ends else Action.ALERT
        case _:
            assert_never(policy.on_detection)


def _acted(incident: Incident, action: Action, now: float) -> Incident:
    match action:
        case Action.ALERT:
            return incident
        case Action.ASK:
            return replace(incident, status=IncidentStatus.ASKED, asked_at=now)
        case Action.STOP:
            return replace(incident, status=IncidentStatus.STOPPING)
        case _:
            assert_never(action)

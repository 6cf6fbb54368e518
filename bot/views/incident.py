"""Incidents: the alert that is edited as they go on, the question, the list, the details."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final
from zoneinfo import ZoneInfo

from aiogram.types import InlineKeyboardButton
from aiogram.utils.formatting import Bold, Code, Text

from bot.callbacks import IncidentButton, IncidentVerb
from bot.views.cleaning import clean
from bot.views.measure import amount, moment, money, plural, span
from bot.views.screen import Screen, lines, screen
from bot.views.text import name
from jobs.alert.notice import AskNotice, IncidentNotice, Outlook, Starter
from jobs.thrash.incident import Incident, IncidentStatus
from jobs.thrash.locality import SeenCall, repeating
from jobs.thrash.policy import OnDetection, ThrashPolicy
from jobs.thrash.session import Session
from jobs.thrash.streak import Ended

_DETAILS_ARGS: Final = 160
"""UTF-16 units of one call's arguments in the details."""
_CALLS_SHOWN: Final = 15
"""So many of the longest calls fit into one message; more would push the newest out of it."""

_TITLES: Final = {
    IncidentStatus.OPEN: ("🔁", " is going round in circles"),
    IncidentStatus.ASKED: ("❓", " is going round in circles. Stop it?"),
    IncidentStatus.STOPPING: ("⏳", " is being stopped"),
    IncidentStatus.STOPPED: ("🛑", " was stopped"),
    IncidentStatus.STOP_FAILED: ("🚨", " could not be stopped"),
    IncidentStatus.STILL_RUNNING: ("🚨", " was stopped and is still running"),
    IncidentStatus.DRY_RUN: ("🧪", " would have been stopped (dry run)"),
    IncidentStatus.RESOLVED: ("✅", " is no longer going round in circles"),
}
_ENDINGS: Final = {
    Ended.RECOVERED: "its newest calls are different ones",
    Ended.QUIET: "it has been quiet since",
    Ended.RESTARTED: "another process has taken over",
}


def alert(notice: IncidentNotice, now: float, zone: ZoneInfo) -> Screen:
    """Render the message of an incident, as it stands."""
    incident = notice.incident
    is_snoozed = (
        incident.snoozed_until is not None and incident.snoozed_until > now and not incident.is_being_stopped
    )
    return screen(
        lines(
            _rehearsed(incident) if notice.outlook.is_dry_run else _title(incident),
            *_facts(incident),
            started_by(notice.starter),
            _outlook(notice),
            f"🔕 snoozed until {moment(incident.snoozed_until or 0, now, zone)}" if is_snoozed else None,
        ),
        *_buttons(incident, can_stop=notice.outlook.can_stop),
    )


def question(notice: AskNotice, now: float, zone: ZoneInfo) -> Screen:
    """Render the question whether to stop an agent."""
    incident = notice.incident
    if incident.status is not IncidentStatus.ASKED:
        closed = Text("❔ ", Bold(name(incident.agent)), " was asked about; the question is closed.")
        return screen(lines(closed, f"The alert of incident #{incident.id} says how it went."))
    grace = f"Without an answer it is stopped at {moment(notice.stops_at, now, zone)} if it goes on."
    return screen(
        lines(_title(incident), grace, _where(incident), started_by(notice.starter)),
        *_buttons(incident, can_stop=True),
    )


def incident_list(
    incidents: Sequence[Incident], starters: Mapping[int, Starter], now: float, zone: ZoneInfo
) -> Screen:
    """Render the latest incidents, newest first; `starters` by the ids of their sessions."""
    if not incidents:
        return screen(Text("No incidents so far."))
    rows = (row(incident, now, zone, starters.get(incident.session_id)) for incident in incidents)
    return screen(lines(Bold("Latest incidents"), *rows))


def details(incident: Incident, session: Session, policy: ThrashPolicy, now: float, zone: ZoneInfo) -> Screen:
    """Render the last calls of an incident's session."""
    head = Text("Incident ", Bold(f"#{incident.id}"), ": last calls of ", name(session.agent))
    return screen(lines(head, *last_calls(session, policy, now, zone)))


def last_calls(session: Session, policy: ThrashPolicy, now: float, zone: ZoneInfo) -> list[Text]:
    """Render the newest of the calls that are scored; those that repeat are marked."""
    recent = session.memory.recent
    repeats = {call.number for call in repeating(recent, policy)}
    return [
        _call(call, call.number in repeats, now, zone) for call in recent[-min(policy.last, _CALLS_SHOWN) :]
    ]


def _title(incident: Incident) -> Text:
    icon, says = _TITLES[incident.status]
    return Text(f"{icon} ", Bold(name(incident.agent)), Bold(says))


def _rehearsed(incident: Incident) -> Text:
    """A dry run stops nothing, not even for the moment between order and report."""
    is_begun = incident.status is IncidentStatus.STOPPING
    return _title(replace(incident, status=IncidentStatus.DRY_RUN) if is_begun else incident)


def _facts(incident: Incident) -> list[Text]:
    return [
        Text("Tool ", name(incident.tool), f", score {incident.score}"),
        Text(damage(incident)),
        _where(incident),
    ]


def _where(incident: Incident) -> Text:
    return Text("Source ", name(incident.source), f", session {incident.session_id}, incident #{incident.id}")


def started_by(starter: Starter | None) -> Text | None:
    """Say whose sub-agent a session is."""
    if starter is None:
        return None
    session = "" if starter.session is None else f", session {starter.session}"
    shares = ", in one process with it: a signal ends both" if starter.shares_process else ""
    return Text("Sub-agent of ", name(starter.agent), f"{session}{shares}")


def damage(incident: Incident) -> str:
    """Say what an incident has cost so far."""
    tokens = "" if incident.tokens is None else f", {plural(incident.tokens, 'token')}"
    took = span(incident.newest_ts - incident.first_ts)
    return f"{plural(incident.calls, 'call')} in {took}{tokens}{_cost(incident)}"


def _cost(incident: Incident) -> str:
    return (
        ""
        if incident.cost is None
        else f", {money(incident.cost, incident.currency, is_part=incident.unpriced > 0)}"
    )


def _outlook(notice: IncidentNotice) -> str | None:
    incident = notice.incident
    if incident.ended is not None:
        return f"It ended: {_ENDINGS[incident.ended]}."
    if not incident.is_undecided:
        return None
    return f"Scan {incident.steps} in a row{_what_follows(incident, notice.outlook)}"


def _what_follows(incident: Incident, outlook: Outlook) -> str:
    if not outlook.can_stop:
        return ". This source has no killer: it is only observed."
    match outlook.on_detection:
        case OnDetection.OBSERVE:
            return ". It is only observed."
        case OnDetection.ASK if incident.asked_at is not None:
            return ". You were asked."
        case OnDetection.ASK:
            return f"; at {outlook.kill_after} you are asked."
        case OnDetection.STOP if outlook.is_dry_run:
            return f"; at {outlook.kill_after} a dry run says so, and nothing is stopped."
        case OnDetection.STOP:
            return f"; at {outlook.kill_after} it is stopped."


def _buttons(incident: Incident, *, can_stop: bool) -> list[list[InlineKeyboardButton]]:
    if incident.closed_at is not None or incident.is_being_stopped:
        return [[_button("Details", IncidentVerb.DETAILS, incident)]]
    first = [_button("Kill", IncidentVerb.KILL, incident)] if can_stop else []
    snooze = [
        _button("Snooze 15 m", IncidentVerb.SNOOZE_15, incident),
        _button("Snooze 1 h", IncidentVerb.SNOOZE_60, incident),
    ]
    return [[*first, _button("Details", IncidentVerb.DETAILS, incident)], snooze]


def _button(label: str, verb: IncidentVerb, incident: Incident) -> InlineKeyboardButton:
    data = IncidentButton(verb=verb, incident=incident.id).pack()
    style = "danger" if verb is IncidentVerb.KILL else None
    return InlineKeyboardButton(text=label, callback_data=data, style=style)


def row(incident: Incident, now: float, zone: ZoneInfo, starter: Starter | None = None) -> Text:
    """Render an incident in one line."""
    of = () if starter is None else (" of ", name(starter.agent, 24))
    icon, says = _TITLES[incident.status]
    tokens = "" if incident.tokens is None else f", {amount(incident.tokens)} tokens"
    return Text(
        f"{icon} #{incident.id} {moment(incident.opened_at, now, zone)} ",
        name(incident.agent, 24),
        *of,
        f"{says}: ",
        name(incident.tool, 24),
        f", {plural(incident.calls, 'call')}{tokens}{_cost(incident)}",
    )


def _call(call: SeenCall, is_repeat: bool, now: float, zone: ZoneInfo) -> Text:
    marks = ("🔁" if is_repeat else "▫️") + ("❌" if call.is_error else "")
    args = " ".join(clean(call.identity, _DETAILS_ARGS).split())
    return Text(f"{marks} {moment(call.ts, now, zone)} ", name(call.tool, 32), " ", Code(args))

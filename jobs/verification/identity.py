"""Which run is a report about? One run has one key, whoever tells of it and however often."""

from datetime import tzinfo
from typing import Final

from jobs.verification.history import RecordedVerdict, Report, Run, Trigger
from jobs.verification.slots import date_of, slot_of
from jobs.verification.spec import Names, WorkflowSpec
from jobs.verification.verdict import Artifact, Outcome, Sighting

_ASKED: Final = frozenset({Trigger.COMMAND, Trigger.CHAT})
"""Who wants a verdict, whether or not there is one."""

_TELLING: Final = 120.0
"""Seconds, beside `settle`, in which a reporter tells of a run that was verified already."""


def slot_for(spec: WorkflowSpec, report: Report, zone: tzinfo) -> float | None:
    """Return when the run was due, None if its workflow has no slots."""
    if report.slot is not None or spec.expect is None:
        return report.slot
    return slot_of(spec.expect, report.at, zone)


def names_of(spec: WorkflowSpec, report: Report, zone: tzinfo) -> Names:
    """Return what the placeholders of a workflow stand for in this run."""
    slot = slot_for(spec, report, zone)
    return Names(date=date_of(report.at if slot is None else slot, zone), run=report.reported)


def key_of(report: Report, slot: float | None, artifact: Artifact | None, *, has_slots: bool) -> str:
    """Return what tells the run from its workflow's others: when it was due, its own id, or what it left."""
    if slot is not None:
        return f"{'slot' if has_slots else 'due'}:{slot:.0f}"
    if report.by is Trigger.SESSION:
        # A session goes quiet more than once, and each time is the end of a run.
        return f"end:{report.reported}:{report.at:.3f}"
    if report.reported is not None:
        return f"run:{report.reported}"
    return artifact.key if artifact else f"none:{report.at:.3f}"


def run_of(spec: WorkflowSpec, report: Report, slot: float | None, artifact: Artifact | None) -> Run:
    """Return the run that a report is about, as a new one."""
    key = key_of(report, slot, artifact, has_slots=spec.expect is not None)
    return Run(workflow=spec.name, key=key, slot=slot, reported=report.reported, at=report.at)


def is_about(report: Report, run: Run, verdict: RecordedVerdict, spec: WorkflowSpec) -> bool:
    """Whether a report is about a run whose verdict is about the very output that lies there now.

    Who has no id for a run means whichever has left the output. Who has one may mean a run that nobody had claimed and
    that was verified just before; else the output is an earlier run's, and this one has left none.
    """
    if report.reported is None:
        return True
    if run.reported is None:
        return report.at - verdict.at <= spec.settle + _TELLING
    return run.reported == report.reported and report.by is not Trigger.SESSION


def is_missing(
    report: Report, slot: float | None, newest: RecordedVerdict | None, output: Sighting | None
) -> bool:
    """Whether a run that was missing still is: a person has asked, and nothing was left since it was due."""
    if report.by is not Trigger.CHAT or newest is None or newest.outcome is not Outcome.MISSING:
        return False
    return output is None or (slot is not None and output.mtime_ns / 1e9 < slot)


def is_failed_try(
    report: Report, newest: RecordedVerdict | None, output: Sighting | None, outcome: Outcome
) -> bool:
    """Whether what a run has failed with until now was a try: another has followed, or the same passes by now."""
    if newest is None or newest.outcome is not Outcome.FAIL:
        return False
    if outcome is Outcome.PASS:
        # Of the same output, too: its specification may be another one by now.
        return True
    artifact = newest.judged.artifact
    if artifact is None and output is None:
        # Who reports it has tried once more; a person only asks.
        return report.by is not Trigger.CHAT
    return artifact is None or artifact.sighting != output


def is_verified(report: Report, newest: RecordedVerdict | None, output: Sighting | None) -> bool:
    """Whether a run needs no other verdict: its newest is about this very output, and nobody has asked for one."""
    if newest is None or newest.outcome is Outcome.MISSING or report.by in _ASKED:
        return False
    artifact = newest.judged.artifact
    return (artifact.sighting if artifact else None) == output

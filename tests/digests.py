"""Digests, where a test does not care how they came about."""

from typing import Any

from jobs.digest.digest import Answer, Away, Digest, PinChange, StoppedLoop, Tested, WeekRate
from jobs.digest.figures import CheckFigures, Figures, RunFigures
from jobs.thrash.price import UNIT
from jobs.verification.drift import Alarm, Drift
from jobs.verification.trial import MadeOf, Trial, Trials
from jobs.verification.verdict import Check

SUNDAY = 1_795_975_200.0
"""2026-11-29 18:00 UTC, when week 48 ends."""
_HOUR = 3600
_DAY = 24 * _HOUR
WEEK = 7 * _DAY

QUESTIONS = (
    Answer(question="Is a model in the verification path?", answer="No."),
    Answer(question="Could each criterion be a unit test?", answer="Yes, but:", names=("nightly", "weekly")),
    Answer(question="Did the pass rate ever go down?", answer="Yes, in 2026-W47."),
)
CHECKS = (
    CheckFigures(workflow="nightly", check=Check.EXISTS, passed=30, failed=0, not_reached=0),
    CheckFigures(workflow="nightly", check=Check.PARSES, passed=30, failed=0, not_reached=0),
    CheckFigures(workflow="nightly", check=Check.FIELDS, passed=28, failed=2, not_reached=0),
    CheckFigures(workflow="nightly", check=Check.FRESH, passed=28, failed=0, not_reached=2),
)
FIGURES = Figures(
    runs=(
        RunFigures(workflow="nightly", passed=28, failed=2, missing=1, says_failed=3, said_done=2),
        RunFigures(workflow="weekly", missing=1),
    ),
    checks=CHECKS,
)
RATES = tuple(
    WeekRate(week=f"2026-W{37 + number}", passed=passed, failed=failed)
    for number, (passed, failed) in enumerate(((30, 1), (0, 0), (27, 3), (30, 0), (28, 2)), start=7)
)


def a_digest(**fields: Any) -> Digest:
    """The digest of a week in which two of thirty runs failed."""
    given: dict[str, Any] = {
        "week": "2026-W48",
        "since": SUNDAY - WEEK,
        "until": SUNDAY,
        "figures": FIGURES,
        "rates": RATES,
        "answers": QUESTIONS,
    }
    return Digest(**given | fields)


def an_eventful_digest() -> Digest:
    """One with something in every section."""
    stop = StoppedLoop(
        at=SUNDAY - 5 * _DAY,
        agent="worker-3",
        source="gateway",
        incident=7,
        ordered_by=None,
        tool="read_file",
        kind="thrash_loop",
        score=10,
        calls=166,
        span=660.0,
        tokens=149_903,
        cost=1_200 * UNIT // 1000,
        currency="USD",
        is_cost_part=False,
    )
    survivor = Trial(mutant="status renamed", check=Check.STATUS, is_detected=False, found="all passed")
    tests = (
        Tested(
            workflow="nightly",
            at=SUNDAY,
            made_of=MadeOf.OUTPUT,
            trials=Trials(detected=40, survivors=(survivor,)),
        ),
        Tested(workflow="weekly", at=SUNDAY, made_of=MadeOf.SPECIFICATION, trials=Trials(detected=12)),
    )
    alarms = (
        Alarm(
            drift=Drift.JUMPED,
            workflow="nightly",
            check=Check.FIELDS,
            runs=30,
            failed=5,
            earlier_runs=210,
            earlier_failed=2,
            likelihood=0.000012,
        ),
        Alarm(drift=Drift.NO_RUNS, workflow="weekly", runs=1, last_ran="2026-W47"),
        Alarm(drift=Drift.NEVER_REACHED, workflow="hourly", check=Check.COUNT, runs=168),
        Alarm(
            drift=Drift.TOO_GOOD,
            workflow="nightly",
            check=Check.EXISTS,
            weeks=3,
            runs=93,
            earlier_runs=210,
            earlier_failed=5,
            likelihood=0.106,
        ),
        Alarm(
            drift=Drift.TOO_GOOD,
            workflow="nightly",
            check=Check.PARSES,
            weeks=3,
            runs=93,
            earlier_runs=210,
            likelihood=0.39,
        ),
    )
    pins = (
        PinChange(
            at=SUNDAY - 4 * _DAY,
            kind="workflow",
            name="nightly",
            how="approved",
            by=4711,
            before="a" * 64,
            after="b" * 64,
        ),
        PinChange(
            at=SUNDAY - 3 * _DAY,
            kind="killer",
            name="stopper",
            how="first use",
            by=None,
            before="",
            after="c" * 64,
        ),
        PinChange(
            at=SUNDAY - 2 * _DAY,
            kind="source",
            name="old",
            how="approved",
            by=4711,
            before="d" * 64,
            after="",
        ),
    )
    away = (
        Away(since=SUNDAY - _DAY, until=SUNDAY - _DAY + 2 * _HOUR),
        Away(since=SUNDAY - _HOUR, until=SUNDAY - _HOUR + 90),
    )
    return a_digest(alarms=alarms, selftests=tests, stops=(stop,), pins=pins, absences=away)

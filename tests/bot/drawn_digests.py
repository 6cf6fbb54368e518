"""Digests as Hypothesis draws them: whatever workflows, agents and tools call themselves."""

from typing import Final

from hypothesis import strategies as st

from jobs.alert.digest_notice import DigestNotice
from jobs.digest.digest import Answer, Away, Digest, PinChange, StoppedLoop, Tested, WeekRate
from jobs.digest.figures import CheckFigures, Figures, RunFigures
from jobs.verification.drift import Alarm, Drift
from jobs.verification.trial import MadeOf, Trial, Trials
from jobs.verification.verdict import Check
from tests.bot.safety import LARGEST_ID, foreign, ids
from tests.digests import SUNDAY, WEEK

_counts: Final = st.integers(0, 10**9) | st.integers(0, 3)
_money: Final = st.none() | st.integers(0, 2**63)
_times: Final = st.floats(SUNDAY - WEEK, SUNDAY)
_checks: Final = st.sampled_from(Check)
_hashes: Final = st.sampled_from(("", "a" * 64, "b" * 64))

_alarms: Final = st.builds(
    Alarm,
    drift=st.sampled_from(Drift),
    workflow=foreign,
    check=st.none() | _checks,
    weeks=_counts,
    runs=_counts,
    failed=_counts,
    earlier_runs=_counts,
    earlier_failed=_counts,
    likelihood=st.floats(0, 1),
    week=st.just("2026-W48"),
    last_ran=st.sampled_from(("", "2026-W07")),
)
_trials: Final = st.builds(
    Trials,
    detected=_counts,
    survivors=st.lists(
        st.builds(Trial, mutant=foreign, check=_checks, is_detected=st.just(value=False), found=foreign),
        max_size=2,
    ).map(tuple),
    trouble=st.just("") | foreign,
)
_tests: Final = st.builds(
    Tested, workflow=foreign, at=_times, made_of=st.sampled_from(MadeOf), trials=_trials
)
_stops: Final = st.builds(
    StoppedLoop,
    at=_times,
    agent=foreign,
    source=foreign,
    incident=_counts,
    ordered_by=st.none() | st.integers(1, LARGEST_ID),
    tool=foreign,
    kind=foreign,
    score=_counts,
    calls=_counts,
    span=st.floats(0, 10**9),
    tokens=_money,
    cost=_money,
    currency=st.sampled_from((None, "USD", "CHF")),
    is_cost_part=st.booleans(),
)
_pins: Final = st.builds(
    PinChange,
    at=_times,
    kind=st.sampled_from(("workflow", "source", "killer")),
    name=foreign,
    how=st.sampled_from(("approved", "first use")),
    by=st.none() | st.integers(1, LARGEST_ID),
    before=_hashes,
    after=_hashes,
)
_absences: Final = st.builds(Away, since=_times, until=st.just(SUNDAY))
_answers: Final = st.builds(
    Answer,
    question=st.just("Is a model in the verification path?"),
    answer=st.just("No."),
    names=st.lists(foreign, max_size=3).map(tuple),
)


@st.composite
def _figures(draw: st.DrawFn) -> Figures:
    names = draw(st.lists(foreign, max_size=3, unique=True))
    counts = {"passed": _counts, "failed": _counts}
    runs = [
        draw(
            st.builds(
                RunFigures,
                workflow=st.just(name),
                missing=_counts,
                says_failed=_counts,
                said_done=_counts,
                **counts,
            )
        )
        for name in names
    ]
    checks = [
        draw(
            st.builds(
                CheckFigures, workflow=st.just(name), check=st.just(check), not_reached=_counts, **counts
            )
        )
        for name in names
        for check in draw(st.lists(_checks, unique=True))
    ]
    return Figures(runs=tuple(runs), checks=tuple(checks))


def _few(values: st.SearchStrategy[object]) -> st.SearchStrategy[tuple[object, ...]]:
    return st.lists(values, max_size=2).map(tuple)


digests: Final = st.builds(
    Digest,
    week=st.sampled_from((None, "2026-W48", "2027-W01")),
    since=st.floats(SUNDAY - 30 * WEEK, SUNDAY - 1),
    until=st.just(SUNDAY),
    weeks=st.integers(1, 99),
    figures=_figures(),
    rates=st.lists(
        st.builds(WeekRate, week=st.just("2026-W07"), passed=_counts, failed=_counts), max_size=12
    ).map(tuple),
    alarms=_few(_alarms),
    selftests=_few(_tests),
    untested=_few(foreign),
    stops=_few(_stops),
    pins=_few(_pins),
    absences=_few(_absences),
    answers=_few(_answers),
)
digest_notices: Final = st.builds(DigestNotice, digest=ids, body=digests)

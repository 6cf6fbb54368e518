"""Self-tests of workflows that call themselves, and their fields, whatever they like."""

from hypothesis import strategies as st

from jobs.alert.selftest_notice import SelftestNotice
from jobs.verification.trial import MadeOf, Trial, Trials
from jobs.verification.verdict import Check
from tests.bot.safety import foreign

_trials = st.builds(
    Trial,
    mutant=foreign,
    check=st.sampled_from(Check),
    is_detected=st.just(value=False),
    found=foreign,
)
selftest_notices = st.builds(
    SelftestNotice,
    workflow=foreign,
    made_of=st.sampled_from(MadeOf),
    result=st.builds(
        Trials,
        detected=st.integers(0, 100),
        survivors=st.lists(_trials, min_size=1, max_size=12).map(tuple),
        trouble=foreign,
    ),
)

"""A rehearsal says what it would do."""

from jobs.killers.dry_run import DryRunKiller
from jobs.ports import Outcome, Stopped
from tests.killers.conftest import TARGET, TargetOf


async def test_it_says_what_it_would_stop() -> None:
    stopped = await DryRunKiller().stop(TARGET, harder=False)
    assert stopped == Stopped(
        outcome=Outcome.DRY_RUN, detail="would stop session s-1 of agent coder (thrash_loop:8)"
    )


async def test_names_are_bounded_and_storable(target_of: TargetOf) -> None:
    stopped = await DryRunKiller().stop(target_of(session="x" * 1000, agent="\ud800"), harder=True)
    assert stopped.detail == f"would stop session {'x' * 199}… of agent ? (thrash_loop:8)"


async def test_it_cannot_tell_whether_anything_lives() -> None:
    assert await DryRunKiller().is_alive(TARGET) is None

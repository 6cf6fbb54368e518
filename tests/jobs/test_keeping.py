"""The last good output of every workflow is kept, bounded, as it was when it was judged."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from jobs.store.database import Database
from jobs.verification.history import Trigger
from jobs.verification.spec import Names
from jobs.verification.trial import GoodOutput
from jobs.verification.verdict import Judged
from tests.jobs.runs import FirstWordJudge, Runs

MEGABYTE = 1_000_000


@pytest.fixture
def runs(store: Database, tmp_path: Path) -> Runs:
    return Runs(store=store, folder=tmp_path)


async def verified(runs: Runs, text: str) -> GoodOutput | None:
    """Have an output verified; return what is kept of the workflow then."""
    runs.put(text)
    await runs.report()
    await runs.verify()
    runs.clock.go_on(60)
    return await runs.store.reading.good_outputs.of("nightly")


async def test_a_good_output_is_kept_as_it_was(runs: Runs) -> None:
    now = runs.clock.now()
    kept = await verified(runs, "good report")
    verdict = await runs.verdict()
    assert verdict.judged.artifact
    assert kept == GoodOutput(
        workflow="nightly",
        run_id=verdict.run_id,
        path=str(runs.folder / "report.txt"),
        sha256=verdict.judged.artifact.sha256,
        mtime_ns=verdict.judged.artifact.mtime_ns,
        judged_as_of=now,
        names=Names(date="2027-01-15"),
        data=b"good report",
    )


async def test_only_the_last_one(runs: Runs) -> None:
    await verified(runs, "good report")
    kept = await verified(runs, "good again")
    assert kept
    assert kept.data == b"good again"


async def test_a_bad_one_changes_nothing(runs: Runs) -> None:
    kept = await verified(runs, "good report")
    assert kept
    assert await verified(runs, "bad report") == kept


async def test_what_is_kept_already_is_not_kept_again(runs: Runs) -> None:
    kept = await verified(runs, "good report")
    assert kept
    assert await verified(runs, "good report") == kept
    assert len(await runs.verdicts()) == 2


@pytest.mark.parametrize("size", [MEGABYTE, MEGABYTE + 1])
async def test_at_most_a_megabyte(runs: Runs, size: int) -> None:
    """Of a larger one, the last that was not is kept on."""
    await verified(runs, "good report")
    kept = await verified(runs, "good ".ljust(size, "x"))
    assert kept
    assert len(kept.data) == (size if size <= MEGABYTE else len("good report"))


@dataclass(slots=True, kw_only=True)
class JudgeOfThePast(FirstWordJudge):
    """By the time of whose verdict another output lies there."""

    path: Path

    def judge(self, *args: Any, **kwargs: Any) -> Judged:
        judged = FirstWordJudge.judge(self, *args, **kwargs)
        self.path.write_text("evil report")
        return judged


async def test_what_was_replaced_meanwhile_is_not_kept(store: Database, tmp_path: Path) -> None:
    runs = Runs(store=store, folder=tmp_path, judge=JudgeOfThePast(path=tmp_path / "report.txt"))
    assert await verified(runs, "good report") is None
    assert (await runs.verdict()).outcome == "pass"


async def test_its_age_is_taken_as_it_was_by_the_verdict(runs: Runs) -> None:
    """One that was judged late, and as of when it came."""
    reported = runs.clock.now()
    runs.put("good report")
    await runs.report(Trigger.REPORT)
    runs.clock.go_on(3600)
    await runs.verify()
    kept = await runs.store.reading.good_outputs.of("nightly")
    assert kept
    assert kept.judged_as_of == reported

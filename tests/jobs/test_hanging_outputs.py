"""Outputs on a file system that hangs keep neither the bot nor another workflow waiting."""

import asyncio
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import pytest

from jobs.artifacts.find import FoundOutputs
from jobs.aside import OverdueError
from jobs.store.database import Database
from jobs.verification.history import Waiting
from jobs.verification.spec import Names, WorkflowSpec
from jobs.verification.verdict import Sighting
from tests.jobs.runs import SETTLE, Runs, Told


@dataclass(slots=True)
class HangingOutputs(FoundOutputs):
    """Those of the workflow `hangs` are looked for until the test is over."""

    is_over: threading.Event = field(default_factory=threading.Event)
    begun: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    """Released when such a look begins."""

    def newest(self, spec: WorkflowSpec, names: Names) -> Sighting | None:
        if spec.name == "hangs":
            self.begun.release()
            assert self.is_over.wait(timeout=60)
        return FoundOutputs.newest(self, spec, names)


@pytest.fixture
def outputs() -> Iterator[HangingOutputs]:
    outputs = HangingOutputs()
    yield outputs
    outputs.is_over.set()


@pytest.fixture
def runs(store: Database, tmp_path: Path) -> Runs:
    folder = tmp_path / "out"
    folder.mkdir()
    runs = Runs(store=store, folder=folder)
    runs.watch.specs = [runs.spec("hangs"), runs.spec("fine")]
    return runs


async def test_a_look_that_hangs_keeps_no_other_workflow_from_being_looked_at(
    runs: Runs, outputs: HangingOutputs
) -> None:
    """Its own workflow is left out as long as it lasts."""
    watch = replace(runs.run_watch, outputs=outputs)
    specs, runs.watch.specs = runs.watch.specs, [runs.spec("hangs")]
    hanging = asyncio.ensure_future(watch())
    assert await asyncio.to_thread(outputs.begun.acquire, timeout=60)
    runs.watch.specs = specs
    await watch()
    runs.write("bad")
    for _ in range(2):
        runs.clock.go_on(SETTLE)
        await watch()
    assert not hanging.done()
    assert [report.workflow for report in await runs.waiting()] == ["fine"]
    assert not outputs.begun.acquire(blocking=False)
    outputs.is_over.set()
    await hanging
    assert set(await runs.store.reading.workflows.all()) == {"hangs", "fine"}


async def test_a_look_that_does_not_come_back_is_a_failure_that_names_the_workflow(
    runs: Runs, outputs: HangingOutputs
) -> None:
    """At each beat anew, and one thread is all that it keeps."""
    runs.watch.specs = [runs.spec("hangs")]
    watch = replace(runs.run_watch, outputs=outputs, patience=0)
    for words in ("a look at hangs has not come back within 0 s", "a look at hangs, begun before"):
        with pytest.raises(ExceptionGroup) as failure:
            await watch()
        [error] = failure.value.exceptions
        assert isinstance(error, OverdueError)
        assert str(error).startswith(words)
        assert error.__notes__ == ["workflow hangs"]
    assert len(watch.aside.under_way) == 1


async def test_a_run_whose_output_cannot_be_looked_for_has_not_delivered(
    runs: Runs, outputs: HangingOutputs
) -> None:
    """Whoever waits for its verdict gets it, and an alert says why."""
    verification = replace(runs.verification, outputs=outputs, patience=0)
    waiting = msgspec.json.encode(Waiting(chat="-1001", message=42)).decode()
    await runs.report(workflow="hangs", answer=waiting)
    assert await verification() == 0
    failure = (await runs.verdict()).judged.verdict.failure
    assert failure
    assert failure.reason == (
        "the output cannot be judged: a look for the output of hangs has not come back within 0 s"
    )
    assert len(await runs.hear()) == 2
    assert await runs.waiting() == []


async def test_a_judging_that_does_not_come_back_is_a_failure(runs: Runs) -> None:
    verification = replace(runs.verification, longest=0)
    runs.judge.slow = {"hangs"}
    runs.write("good")
    await runs.report(workflow="hangs")
    assert await verification() == 0
    runs.judge.may_end.set()
    failure = (await runs.verdict()).judged.verdict.failure
    assert failure
    assert failure.reason == "the output cannot be judged: the judging of hangs has not come back within 0 s"
    told: list[Told] = await runs.hear()
    assert len(told) == 1

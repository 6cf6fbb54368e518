"""What is kept of good outputs and of self-tests, in the bot's connection and in a command's."""

from dataclasses import replace

import pytest

from jobs.pinning.kind import How, Kind
from jobs.pinning.pin import Pin, encoded, hash_of
from jobs.store.blocking import open_blocking
from jobs.store.database import Database
from jobs.verification.spec import Names, WorkflowSpec
from jobs.verification.trial import GoodOutput, MadeOf, SelfTest, Trial, Trials
from jobs.verification.verdict import Check
from tests.fakes import NOON

GOOD = GoodOutput(
    workflow="nightly",
    run_id=1,
    path="/out/report.json",
    sha256="a" * 64,
    mtime_ns=5,
    judged_as_of=NOON,
    names=Names(date="2027-01-15", run="r-7"),
    data=b"\0good\xff",
)
TEST = SelfTest(
    workflow="nightly",
    pin_id=3,
    made_of=MadeOf.OUTPUT,
    result=Trials(
        detected=2, survivors=(Trial(mutant="cut", check=Check.PARSES, is_detected=False, found="it passes"),)
    ),
    at=NOON,
)


async def test_of_a_workflow_there_is_one_good_output(store: Database) -> None:
    """The last one, byte for byte."""
    last = replace(GOOD, sha256="b" * 64, data=b"newer")
    other = replace(GOOD, workflow="weekly")
    async with store.transaction() as tables:
        for output in (GOOD, other, last):
            await tables.good_outputs.keep(output)
        assert await tables.good_outputs.of("nightly") == last
        assert await tables.good_outputs.sha256_of("nightly") == "b" * 64
        assert await tables.good_outputs.of("weekly") == other
        assert await tables.good_outputs.of("hourly") is None
        assert await tables.good_outputs.sha256_of("hourly") is None


async def test_the_newest_test_of_each_workflow(store: Database) -> None:
    async with store.transaction() as tables:
        await tables.selftests.add(TEST)
        newest = await tables.selftests.add(replace(TEST, pin_id=None, at=0))
        other = await tables.selftests.add(replace(TEST, workflow="weekly"))
        assert await tables.selftests.latest() == {"nightly": newest, "weekly": other}


def test_a_command_reads_and_writes_the_same(tmp_path_factory: pytest.TempPathFactory) -> None:
    with open_blocking(str(tmp_path_factory.mktemp("data"))) as store:
        store.write(store.tables.good_outputs.keep(GOOD))
        assert store.read(store.tables.good_outputs.of("nightly")) == GOOD
        assert store.read(store.tables.good_outputs.sha256_of("nightly")) == GOOD.sha256
        test = store.write(store.tables.selftests.add(TEST))
        assert store.read(store.tables.selftests.latest()) == {"nightly": test}


async def test_a_good_output_stays_while_its_workflow_is_pinned(store: Database) -> None:
    """However old; it goes when the workflow was removed, and after the time for which all is kept."""
    entry = encoded(WorkflowSpec(name="nightly"))
    pin = Pin(kind=Kind.WORKFLOW, name="nightly", entry=entry, hash=hash_of(entry), how=How.APPROVED, at=NOON)
    async with store.transaction() as tables:
        await tables.good_outputs.keep(GOOD)
        await tables.pins.add(pin)
        await tables.delete_older_than(NOON + 60, 99)
        assert await tables.good_outputs.of("nightly") == GOOD
        await tables.pins.add(replace(pin, entry=None, hash=hash_of(None)))
        await tables.delete_older_than(NOON, 99)
        assert await tables.good_outputs.of("nightly") == GOOD
        await tables.delete_older_than(NOON + 60, 99)
        assert await tables.good_outputs.of("nightly") is None

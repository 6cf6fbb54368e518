"""A database from before weeks were counted: what a digest counts is filled in for every verdict that is there."""

import sqlite3
from importlib import resources
from pathlib import Path

import msgspec

from jobs.store.database import open_database
from jobs.store.schema import FILE_NAME
from jobs.verification.verdict import Check, CheckResult, Judged, Outcome, Passed, Verdict
from tests.fakes import NOON
from tests.verdicts import MISSING, passing

BAR = "0006_bar.sql"
LIED = Judged(
    verdict=Verdict(
        outcome=Outcome.FAIL,
        results=(
            CheckResult(check=Check.EXISTS, passed=Passed.PASS),
            CheckResult(check=Check.FRESH, passed=Passed.FAIL),
            CheckResult(check=Check.COMMAND, passed=Passed.NOT_REACHED),
        ),
        said_done="ok",
    )
)
ALL = Judged(
    verdict=Verdict(
        outcome=Outcome.PASS, results=tuple(CheckResult(check=check, passed=Passed.PASS) for check in Check)
    )
)


def before_bar(folder: Path, *verdicts: tuple[int, Judged]) -> None:
    """Verdicts with the numbers of their runs, as the schema just before kept them."""
    scripts = sorted(
        (entry for entry in resources.files("jobs.store").joinpath("migrations").iterdir()),
        key=lambda entry: entry.name,
    )
    older = [script for script in scripts if script.name.endswith(".sql") and script.name < BAR]
    connection = sqlite3.connect(folder / FILE_NAME)
    for script in older:
        connection.executescript(script.read_text())
    connection.execute(f"PRAGMA user_version = {len(older)}")
    for run in sorted({run for run, _ in verdicts}):
        sql = "INSERT INTO run (id, workflow, key, at) VALUES (?, 'nightly', ?, ?)"
        connection.execute(sql, (run, f"run:{run}", NOON + run))
    for run, judged in verdicts:
        failure = judged.verdict.failure
        connection.execute(
            """INSERT INTO verdict (run_id, workflow, by, outcome, says_failed, failed_check, judged, at, took)
               VALUES (?, 'nightly', 'output', ?, 0, ?, ?, ?, 0.5)""",
            (
                run,
                judged.verdict.outcome,
                failure and failure.check,
                msgspec.json.encode(judged).decode(),
                NOON + 100,
            ),
        )
    connection.commit()
    connection.close()


async def test_verdicts_from_before_are_counted(tmp_path: Path) -> None:
    """By when their runs were heard of, check by check; of a run that was judged twice the newest counts."""
    before_bar(tmp_path, (1, passing()), (2, LIED), (3, MISSING), (1, LIED), (4, ALL))
    async with open_database(tmp_path) as store:
        verdicts = (await store.reading.verdicts.page(None, None, None, 9))[::-1]
        figures = await store.reading.counts.between(NOON + 2, NOON + 4)
    assert [verdict.ran_at - NOON for verdict in verdicts] == [1, 2, 3, 1, 4]
    lied = "exists fresh command"
    assert [verdict.checks for verdict in verdicts] == ["exists", lied, "", lied, " ".join(Check)]
    assert [verdict.said_done for verdict in verdicts] == [False, True, False, True, False]
    assert [verdict.is_newest for verdict in verdicts] == [False, True, True, True, True]
    [run] = figures.runs
    assert (run.failed, run.missing, run.said_done) == (1, 1, 1)
    assert [(each.check, each.passed, each.failed, each.not_reached) for each in figures.checks] == [
        (Check.EXISTS, 1, 0, 0),
        (Check.FRESH, 0, 1, 0),
        (Check.COMMAND, 0, 0, 1),
    ]

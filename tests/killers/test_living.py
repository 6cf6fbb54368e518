"""Whether a process that a log has named still runs."""

import os
import subprocess
import time

import pytest

from jobs.killers.living import LivingProcesses


def test_a_process_lives_until_it_ends() -> None:
    """One that has ended and was not reaped yet is gone."""
    process = subprocess.Popen(["/bin/sleep", "1000"])
    since = time.time()  # noqa: TID251 - as a log would have it
    living = LivingProcesses()
    assert living.lives(process.pid, since)
    process.kill()
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert not living.lives(process.pid, since)
    process.wait()
    assert not living.lives(process.pid, since)


def test_a_process_that_was_started_later_is_another_one() -> None:
    assert LivingProcesses().lives(os.getpid(), 1e11)
    assert not LivingProcesses().lives(os.getpid(), 0)


@pytest.mark.parametrize("pid", [-1, 2**31 - 1, 2**70])
def test_a_number_that_no_process_has_means_none(pid: int) -> None:
    assert not LivingProcesses().lives(pid, 1e11)

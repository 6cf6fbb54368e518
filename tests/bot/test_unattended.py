"""`loopwarden demo --unattended`, played in a process of its own from beginning to end."""

import os
import subprocess

import psutil

PATIENCE = 240
"""Seconds, on a machine that has other things to do."""


def living_in_session_of(leader: int) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if os.getsid(process.pid) == leader and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except (ProcessLookupError, psutil.NoSuchProcess):
            continue
    return found


def test_unattended_demo(unattended_demo: "subprocess.Popen[str]") -> None:
    """It shows the alert, then the stop, exits 0 because both are true, and leaves nothing running."""
    said, _ = unattended_demo.communicate(timeout=PATIENCE)
    assert unattended_demo.returncode == 0, said
    assert living_in_session_of(unattended_demo.pid) == []
    first, *_ = said.splitlines()
    assert first.startswith("Loopwarden demo: two real toy agents")
    moments = [
        *("is going round in circles", "last calls of", "has exited", "Latest incidents", "Last scan"),
        "report failed: fields",
    ]
    assert sorted(moments, key=said.index) == moments
    assert "(stuck-agent) is gone." in said
    assert "(busy-agent) works on, untouched." in said

"""What a log directory can contain does not take the machine's memory."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

MOST = 64.0
"""MiB beyond the scan of an empty log."""


@pytest.mark.prove
def test_no_log_takes_much_memory() -> None:
    """Every hostile log of the benchmark, each scanned by a process of its own."""
    script = Path(__file__).parent.parent / "benchmarks" / "hostile_memory.py"
    done = subprocess.run([sys.executable, str(script)], check=True, capture_output=True, text=True)  # noqa: S603
    taken = {
        name.strip(): float(mib)
        for name, mib in re.findall(
            r"^MiB beyond an empty log: (.*?)\s+([\d.]+)\s+wanted", done.stdout, re.MULTILINE
        )
    }
    assert len(taken) > 10
    assert {name: mib for name, mib in taken.items() if mib > MOST} == {}

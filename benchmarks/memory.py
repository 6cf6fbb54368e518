"""Memory of this process, as Linux counts it."""

from pathlib import Path


def resident() -> int:
    """Return the bytes in memory now."""
    return _status("VmRSS")


def peak() -> int:
    """Return the most bytes there have been in memory; a child's own, where `getrusage` begins with its parent's."""
    return _status("VmHWM")


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(name + ":"):
            return int(line.split()[1]) * 1024
    raise SystemExit(f"/proc/self/status has no {name}: this benchmark needs Linux.")

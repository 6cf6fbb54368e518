"""What child processes of a test inherit."""

import os


def unmeasured() -> dict[str, str]:
    """Everything but what has a child's coverage measured: that imports more, and writes files of its own."""
    return {name: value for name, value in os.environ.items() if "COVERAGE" not in name}

"""Where the quick commands find the data directory: they read no settings. Imports next to nothing."""

import os

DEFAULT_DATA_DIR = "~/.local/share/loopwarden"


def data_dir() -> str:
    """Return the folder that `LOOPWARDEN_DATA_DIR` names in the environment, else the default one; it may be relative."""
    named = os.environ.get("LOOPWARDEN_DATA_DIR") or DEFAULT_DATA_DIR
    return os.path.expanduser(named)  # noqa: PTH111 - Path's own raises for an unknown user

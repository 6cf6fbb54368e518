"""What a program inherits."""

import os
import sys
from typing import Final

_OWN_PREFIX: Final = "LOOPWARDEN_"


def environment() -> dict[str, str]:
    """Return everything but the bot's own settings, its token among them."""
    return {name: value for name, value in os.environ.items() if not name.upper().startswith(_OWN_PREFIX)}


def own_module(name: str) -> tuple[str, ...]:
    """Return the argv that runs a module of this program, with `own_environment`."""
    # -P: never a module from the folder it is run in, which may be the agents'.
    return (sys.executable, "-P", "-m", name)


def own_environment() -> dict[str, str]:
    """Return the environment in which a module of this program finds what this process has found."""
    return environment() | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}

"""What a program inherits."""

import os
from typing import Final

_OWN_PREFIX: Final = "LOOPWARDEN_"


def environment() -> dict[str, str]:
    """Return everything but the bot's own settings, its token among them."""
    return {name: value for name, value in os.environ.items() if not name.upper().startswith(_OWN_PREFIX)}

"""opencode: one database of all sessions, `~/.local/share/opencode/opencode.db`."""

from functools import partial
from typing import Final

from jobs.sources.log_format import Home, LogFormat
from jobs.sources.opencode_tables import Events, Parts
from jobs.sources.sqlite_log import Databases

_TABLES: Final = (Events(), Parts())

FORMAT: Final = LogFormat(
    source=partial(Databases, formats=_TABLES),
    tables=_TABLES,
    home=Home(
        variable="XDG_DATA_HOME",
        folders=("~/.local/share",),
        patterns=("opencode/opencode*.db",),
    ),
    # A server's process holds many sessions.
    process=r"^(\S*/)?\.?opencode(?! serve)(?! web)(?!\S)",
)

"""Every log format by the name the watch list gives it. A new format is a module and a line here."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from jobs.ports import CallSource
from jobs.sources import gateway
from jobs.sources.log_files import LineParser, LogFiles
from jobs.watchlist import SourceSpec

FORMATS: Final[Mapping[str, LineParser]] = MappingProxyType(
    {
        "gateway": gateway.parse,
    }
)


def build_source(spec: SourceSpec) -> CallSource:
    """Return the source that an entry of the watch list describes. Raises KeyError for an unknown format."""
    return LogFiles(name=spec.name, pattern=spec.path, parse=FORMATS[spec.format])

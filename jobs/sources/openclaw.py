"""OpenClaw's transcripts: a database for each agent, since 2026.8 `agents/<agent>/agent/openclaw-agent.sqlite`.

Table `transcript_events` has an event a row, `event_json` or the same as a zstd frame. Before, a session was a file,
`agents/<agent>/sessions/<session>.jsonl`, with an event a line. A pattern may find both.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from jobs.opening import BESIDE, is_database
from jobs.ports import Batch, Cursor
from jobs.sources.log_files import LogFiles
from jobs.sources.log_format import Home, LogFormat
from jobs.sources.openclaw_audit import Audit
from jobs.sources.openclaw_events import Transcript
from jobs.sources.openclaw_index import Index
from jobs.sources.openclaw_keys import agent_in
from jobs.sources.openclaw_tables import Tables
from jobs.sources.sqlite_log import Databases

_OF_PI: Final = re.compile(r"\d{4}-\d\d-\d\dT[\d-]+Z_[^/]+$")
"""How pi's own logs are named, whose records begin alike: OpenClaw is built on it."""


def begin(path: str, state: str) -> Transcript:
    """Read a file of events: a `LineFormat`."""
    name, index = path.rpartition("/")[2], Index(path)
    session = name.partition(".jsonl")[0] or name
    return Transcript(
        session=session,
        agent=agent_in(path),
        parent=index.starter_of(session),
        session_of=index.session_of,
        state=state,
    )


_TABLES: Final = (Tables(), Audit())


@dataclass(slots=True, kw_only=True)
class OpenClawLogs:
    """A `CallSource`: databases and files of lines, told apart by what they begin with."""

    name: str
    pattern: str
    takes: Callable[[str], bool] = lambda _path: True
    """Whether a path that matches is one of its logs; others are somebody else's concern."""
    _databases: Databases = field(init=False)
    _files: LogFiles = field(init=False)
    _kinds: dict[str, bool] = field(default_factory=dict, init=False)
    """By path whether it is a database, of those that are not empty."""

    def __post_init__(self) -> None:
        self._databases = Databases(
            name=self.name, pattern=self.pattern, formats=_TABLES, takes=self._is_database
        )
        self._files = LogFiles(
            name=self.name, pattern=self.pattern, format=begin, takes=self._is_file_of_lines
        )

    def read_new(self, cursors: Mapping[str, Cursor], now: float) -> Iterator[Batch]:
        """Yield what came since `cursors`."""
        self._kinds = {path: kind for path, kind in self._kinds.items() if path in cursors}
        of_lines = {path: cursor for path, cursor in cursors.items() if cursor.head}
        yield from self._files.read_new(of_lines, now)
        yield from self._databases.read_new(
            {path: cursor for path, cursor in cursors.items() if path not in of_lines}, now
        )

    def problems(self) -> Sequence[str]:
        """What the last `read_new` could not read, one sentence each."""
        # Both look through the same folders.
        return tuple(dict.fromkeys([*self._files.problems(), *self._databases.problems()]))

    def _is_file_of_lines(self, path: str) -> bool:
        return not path.endswith(BESIDE) and self.takes(path) and not self._is_database(path)

    def _is_database(self, path: str) -> bool:
        if not self.takes(path):
            return False
        known = self._kinds.get(path)
        if known is None:
            try:
                known = is_database(path)
                if known or Path(path).stat().st_size:
                    self._kinds[path] = known
            except OSError:
                return False  # whoever reads it as a file of lines will say so
        return known


FORMAT: Final = LogFormat(
    source=OpenClawLogs,
    is_path=lambda path: not _OF_PI.match(path.rpartition("/")[2]),
    is_record=lambda record: record.get("type") == "session" and record.keys() >= {"version", "id"},
    tables=_TABLES,
    home=Home(
        variable="OPENCLAW_STATE_DIR",
        folders=("~/.openclaw", "~/.clawdbot", "~/.moltbot"),
        # What lies under `agents` and `state`, but not in the agents' workspaces, which may be large.
        patterns=("[as][gt]*/**/openclaw*.sqlite", "agents/*/sessions/*.jsonl"),
    ),
)

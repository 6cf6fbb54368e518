"""Whose log of Claude Code it is: of a session the folder it works in, of a sub-agent its task and who has started it."""

from pathlib import PurePath
from typing import Final

import msgspec

from jobs.sources.claude_meta import caller, read_meta
from jobs.sources.claude_records import Record
from jobs.sources.fields import short

_NO_NAME: Final = "claude-code"


class Origin(msgspec.Struct, omit_defaults=True):
    """What is known of the session or sub-agent that a log is of."""

    session: str = ""
    """As the file was called when it was found; of one that was given another name, as its first record says."""
    folder: str = ""
    """The name of the one it began in; it may move on."""
    is_placed: bool = False
    """Whether it is known what lies beside a sub-agent's log; then these tell its name and whose it is."""
    task: str = ""
    parent: str = ""

    def see(self, record: Record) -> None:
        """Take the folder of the first record that tells one, and the session if the log's name does not."""
        self.session = self.session or short(record.session_id or "")
        if not self.folder and record.cwd:
            self.folder = short(PurePath(record.cwd).name)

    def find_place(self, path: str) -> None:
        """Look at what lies beside a sub-agent's log."""
        meta = read_meta(path)
        if meta is None:
            return
        self.is_placed = True
        self.task = short(meta.description or meta.agent_type or "")
        if meta.tool_use_id and (meta.spawn_depth or 0) > 1:
            self.parent = short(caller(meta.tool_use_id, path) or "")

    def of_session(self) -> str:
        """Return the agent's name."""
        return self.folder or _NO_NAME

    def of_agent(self, record: Record) -> tuple[str, str | None]:
        """Return a sub-agent's name and the session that has started it: the root, if no other is known."""
        root = short(record.session_id or "")
        parent = self.parent if self.parent not in {"", self.session} else root
        return self.task or short(record.attribution_agent or "") or _NO_NAME, parent

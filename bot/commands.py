"""The command menu: one list for the chat's menu, /help and the README."""

from dataclasses import dataclass
from typing import Final

MOST_WEEKS: Final = 99
"""Of a digest that somebody asks for."""


@dataclass(frozen=True, slots=True)
class ChatCommand:
    """One command as people see it."""

    name: str
    argument: str
    does: str
    changes: bool = False
    """Whether it changes something: then it must have been sent just now."""


COMMANDS: Final = (
    ChatCommand("start", "", "say hello and how to go on"),
    ChatCommand("help", "", "list the commands"),
    ChatCommand("status", "", "is the guard working: last scan, sources, unreadable lines, messages"),
    ChatCommand("agents", "", "list the sessions seen in the last 24 hours"),
    ChatCommand("agent", "ID", "show one session and its last calls"),
    ChatCommand("kill", "ID", "stop one session, after a confirmation", changes=True),
    ChatCommand("incidents", "", "list the latest incidents and how they ended"),
    ChatCommand("workflows", "", "how every workflow stands, and when its next run is due"),
    ChatCommand("verify", "NAME", "check what a workflow has left, now", changes=True),
    ChatCommand("history", "[NAME]", "page through the verdicts, of one workflow or of all"),
    ChatCommand("run", "ID", "show one run with every check"),
    ChatCommand("audit", "", "what of the watch list was pinned, by whom, and what its file says otherwise"),
    ChatCommand("digest", "[WEEKS]", "passes, failures and drift: the week so far, or the last WEEKS weeks"),
)

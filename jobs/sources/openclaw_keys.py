"""OpenClaw's session keys, `agent:<agent>:<rest>`, and its folders, `agents/<agent>/…`."""

import os.path
from typing import Final

_BEGINNING: Final = "agent:"


def is_key(name: str) -> bool:
    """Whether it is a key, not a session's id."""
    return name.startswith(_BEGINNING)


def agent_of(key: str) -> str:
    """Return the agent that a key names, or nothing."""
    parts = key.split(":")
    return parts[1] if is_key(key) and len(parts) > 2 else ""  # noqa: PLR2004 - `agent:<agent>:<rest>`


def agent_in(path: str) -> str:
    """Return the agent that a path names, or nothing."""
    parts = path.split("/")[:-1]
    return parts[len(parts) - parts[::-1].index("agents")] if "agents" in parts[:-1] else ""


def of_agent(path: str, agent: str) -> str | None:
    """Return where another agent has what this one has at `agents/<agent>/<folder>/<name>`; a key may name anything."""
    folder, name = os.path.split(path)
    if not agent or "/" in agent or agent.startswith("."):
        return None
    agents, its_name = os.path.dirname(os.path.dirname(folder)), os.path.basename(folder)
    return os.path.join(agents, agent, its_name, name)

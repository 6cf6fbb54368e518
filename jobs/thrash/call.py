"""One tool call, as every log format hands it on."""

import msgspec


class ToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """One invocation of a tool, read from a log.

    A struct rather than a dataclass because a log has millions of them and creation is the cost.
    """

    session: str
    """The source's own id of the session."""
    agent: str
    ts: float
    """Epoch seconds on the log's own clock."""
    tool: str
    args: bytes = b"null"
    """The arguments as the log wrote them: valid JSON, undecoded."""
    args_hash: str | None = None
    """Given by logs that keep no arguments; then only equal hashes repeat."""
    parent: str | None = None
    pid: int | None = None
    """The log writer's claim, never trusted on its own."""
    is_error: bool = False
    tokens: int | None = None

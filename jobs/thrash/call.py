"""One tool call, as every log format hands it on."""

from typing import Protocol

import msgspec


class LoggedCall(Protocol):
    """One invocation of a tool. A log has millions, most of them only counted: attributes may be worked out late."""

    @property
    def session(self) -> str:
        """The source's own id of the session."""
        ...

    @property
    def agent(self) -> str: ...
    @property
    def ts(self) -> float:
        """Epoch seconds on the log's own clock."""
        ...

    @property
    def tool(self) -> str: ...
    @property
    def args(self) -> bytes:
        """The arguments as the log wrote them: valid JSON, undecoded."""
        ...

    @property
    def args_hash(self) -> str | None:
        """Given by logs that keep no arguments; then only equal hashes repeat."""
        ...

    @property
    def parent(self) -> str | None: ...
    @property
    def pid(self) -> int | None:
        """The log writer's claim, never trusted on its own."""
        ...

    @property
    def is_error(self) -> bool: ...
    @property
    def tokens(self) -> int | None: ...


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A call with all that is known of it."""

    session: str
    agent: str
    ts: float
    tool: str
    args: bytes = b"null"
    args_hash: str | None = None
    parent: str | None = None
    pid: int | None = None
    is_error: bool = False
    tokens: int | None = None

"""What logs tell of a session, whatever their format: calls, their answers, and what the model has used."""

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
    def call_id(self) -> str | None:
        """The log's own id of the call, which its answer bears too."""
        ...

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
    def is_error(self) -> bool:
        """Whether it failed, where the log tells that with the call itself; else its `Answer` tells it."""
        ...

    @property
    def tokens(self) -> int | None:
        """Of the model's answer that the call is in; of several calls in one answer the first has them."""
        ...


class ToolCall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A call with all that is known of it."""

    session: str
    agent: str
    ts: float
    tool: str
    call_id: str | None = None
    args: bytes = b"null"
    args_hash: str | None = None
    parent: str | None = None
    pid: int | None = None
    is_error: bool = False
    tokens: int | None = None


class Answer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What became of a call, where a log tells it after the call itself. Told once."""

    session: str
    call_id: str
    ts: float
    is_error: bool
    """Whether the call has failed: the log flags it, or has an exit code other than 0, which some logs do not flag."""
    digest: str
    """Equal for equal answers: a hash without what varies between them, such as times and process ids."""


class Usage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What one answer of the model has used. Told once, also where the log repeats it."""

    session: str
    ts: float
    model: str | None
    input: int
    """Tokens, without those from the cache."""
    output: int
    cached: int
    """Tokens written to the cache and read from it."""
    written: int = 0
    """Those of them that were written."""
    cost: float | None = None
    """Money, where the log names it."""
    has_call: bool = False
    """Whether the tokens are told with a call, too."""

    @property
    def tokens(self) -> int:
        """All of them."""
        return self.input + self.output + self.cached


Entry = LoggedCall | Answer | Usage

"""Every seam on one page: what the jobs need from files, processes, the database and the chat.

Times are epoch seconds: `now` and `*_at` on the bot's clock, `*_ts` on a log's own.
"""

from collections.abc import Awaitable, Collection, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Final, Protocol, Self

import msgspec

from jobs.alert.notice import Outlook
from jobs.alert.outgoing import Outgoing, Queued
from jobs.alert.pace import Pace
from jobs.digest.digest import WeekRate
from jobs.digest.figures import Figures
from jobs.pinning.kind import Kind
from jobs.pinning.pin import Entry, Pin, Proposal
from jobs.thrash.call import Answer, LoggedCall, Usage
from jobs.thrash.incident import Incident
from jobs.thrash.policy import OnDetection, ThrashPolicy
from jobs.thrash.price import NO_PRICES, Prices
from jobs.thrash.session import Session
from jobs.verification.checks import Ran
from jobs.verification.history import RecordedVerdict, Report, Run, WorkflowState
from jobs.verification.spec import CommandCheck, Names, WorkflowSpec
from jobs.verification.trial import GoodOutput, MadeOf, SelfTest, Trials
from jobs.verification.verdict import Artifact, Judged, Past, Sighting
from jobs.verification.verdict import Outcome as RunOutcome

# ── time ──────────────────────────────────────────────────────────────────────────────────────────


class Clock(Protocol):
    """The only reader of the time."""

    def now(self) -> float:
        """Epoch seconds."""
        ...


# ── where calls are read ──────────────────────────────────────────────────────────────────────────


class Cursor(msgspec.Struct, frozen=True, kw_only=True):
    """How far one file has been read, and how to tell that it is still the same file."""

    device: int
    inode: int
    offset: int
    """Bytes consumed; always just after a line end, or inside a line that is too long to read."""
    head: str
    """Fingerprint of the file's first bytes."""
    tail: str
    """Fingerprint of the bytes before `offset`; of a database that was read to its end, sizes and times of its files."""
    in_long_line: bool = False
    is_behind: bool = False
    """Whether more was there than has been read: then what comes next is no news."""
    unreadable: int = 0
    """Lines skipped so far."""
    read_at: float = 0
    """When the file was last looked at; in the database, where nothing was new, up to half an hour before."""
    state: str = ""
    """JSON: what the format must remember of the lines before, such as calls that have no answer yet."""
    format: str = ""
    """The file's, if its source reads files of several."""


class Batch(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What is new in one file, in log order, and the cursor after it."""

    path: str
    cursor: Cursor
    """The very one that was given, where it is certain that nothing is new."""
    calls: Sequence[LoggedCall]
    answers: Sequence[Answer] = ()
    usages: Sequence[Usage] = ()
    size: int = 0
    """Bytes that were read for it."""
    is_hook: bool = False
    """Whether the agents' program has told it by a hook, beside its log."""


class CallSource(Protocol):
    """A place where tool calls are logged. Methods block; they are called in a thread."""

    name: str

    def read_new(self, cursors: Mapping[str, Cursor], now: float) -> Iterator[Batch]:
        """Yield what came since `cursors` (by path), in bounded batches, one at least for every file that exists.

        A file that cannot be read is named in `problems()`, never raised.
        """
        ...

    def problems(self) -> Sequence[str]:
        """What the last `read_new` could not read, one sentence each, naming the file."""
        ...


# ── what stops a session ──────────────────────────────────────────────────────────────────────────


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """The session to be stopped."""

    source: str
    session: str
    agent: str
    reason: str
    score: int
    pid: int | None
    pid_since_ts: float | None
    """The first call that named this pid; a process that started later is another one."""
    last_ts: float
    """The session's newest call."""


class Outcome(StrEnum):
    """How an attempt to stop ended."""

    STOPPED = "stopped"
    FAILED = "failed"
    """Tried, and it did not work."""
    REFUSED = "refused"
    """Not tried: a guard said no."""
    DRY_RUN = "dry_run"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The outcome of one attempt, and what happened in one sentence (`process 1234 has exited`)."""

    outcome: Outcome
    detail: str


class Killer(Protocol):
    """Stops a session. Idempotent: an attempt cut short is made again after a restart."""

    async def stop(self, target: Target, *, harder: bool) -> Stopped:
        """Stop the session; `harder` is the escalation after a stop that did not hold. Never raises for a target."""
        ...

    async def is_alive(self, target: Target) -> bool | None:
        """Whether the target's process still lives; None if this killer cannot tell."""
        ...


class Processes(Protocol):
    """The processes of this machine. Methods block; they are called in a thread."""

    def lives(self, pid: int, since: float) -> bool:
        """Whether the process that had this pid at a time (epoch seconds) still runs."""
        ...


# ── where outputs are found and judged ────────────────────────────────────────────────────────────


class Outputs(Protocol):
    """Where the outputs lie. Methods block; they are called in a thread."""

    def newest(self, spec: WorkflowSpec, names: Names) -> Sighting | None:
        """Return the regular file that was written last of those that match, None if there is none."""
        ...


class Judge(Protocol):
    """Reads an output and tries every check on it. Blocks; called in a thread."""

    def judge(
        self,
        spec: WorkflowSpec,
        names: Names,
        now: float,
        past: Past,
        *,
        path: str | None = None,
        said: str = "",
    ) -> Judged:
        """Judge the output as of `now`; `path` in place of the newest match, `said`: what its reporter says of it.

        Never raises for what lies there, and takes bounded time and memory.
        """
        ...


class Copier(Protocol):
    """Keeps what was judged. Blocks; called in a thread."""

    def copy(self, artifact: Artifact) -> bytes | None:
        """Return the bytes of the file as it was judged; None if it is too large, or is another one by now."""
        ...


class Tester(Protocol):
    """Makes outputs bad on purpose and has them judged. Blocks; called in a thread."""

    def test(self, spec: WorkflowSpec, good: GoodOutput | None, now: float) -> tuple[MadeOf, Trials]:
        """Try every mutant of the good output, or of one made up. Never raises, takes bounded time and memory."""
        ...


class CommandRunner(Protocol):
    """Runs the command that a workflow asks for. Blocks; called in a thread."""

    def run(self, command: CommandCheck, workflow: str, names: Names, path: str) -> Ran:
        """Run it on the output at `path` and wait for its end. Never raises for what the command does."""
        ...


# ── what is watched now ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """A source with what may be done about its sessions."""

    source: CallSource
    killer: Killer | None
    on_detection: OnDetection
    is_dry_run: bool = False
    """Whether the killer only says what it would do."""
    has_other_step: bool = False
    """Whether the killer's harder step is another killer."""
    missing_killer: str | None = None
    """The name of one that is not in force: until it is, there is none."""
    prices: Prices = NO_PRICES


def outlook_of(watched: Watched | None, policy: ThrashPolicy) -> Outlook:
    """Say what an incident may come to; of a source without killer, or no longer watched, it is only observed."""
    if watched is None or watched.killer is None:
        on_detection, can_stop, is_dry_run = OnDetection.OBSERVE, False, False
    else:
        on_detection, can_stop, is_dry_run = watched.on_detection, True, watched.is_dry_run
    return Outlook(
        can_stop=can_stop,
        on_detection=on_detection,
        kill_after=policy.kill_after,
        ask_grace=policy.ask_grace,
        is_dry_run=is_dry_run,
    )


class Watch(Protocol):
    """The watch list in force."""

    def sources(self) -> Mapping[str, Watched]:
        """Every watched source by its name."""
        ...

    def workflows(self) -> Mapping[str, WorkflowSpec]:
        """Every workflow by its name."""
        ...


class WatchlistInForce(Watch, Protocol):
    """The watch list as it is written, and as it is in force: only what was approved is."""

    error: str | None
    """Why the file, as it was last read, cannot be used; None while it can."""
    prices: Prices
    """Those of the file, when it could last be used: they are in force without approval."""

    def written(self) -> Sequence[Entry] | None:
        """Read the file again if it changed, and return what it says in its order, with contents; None: see `error`.

        Blocks; called in a thread.
        """
        ...

    def enforce(self, entries: Sequence[Entry]) -> None:
        """Put these in force, and nothing else."""
        ...


# ── the database ──────────────────────────────────────────────────────────────────────────────────


class StopState(StrEnum):
    """Where a stop stands."""

    INTENDED = "intended"
    WATCHED = "watched"
    """Carried out; looked at again until it has held."""
    OVER = "over"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """One order to stop a session: the intent before, the outcome after."""

    id: int
    session_id: int
    incident_id: int | None
    target: Target
    ordered_by: int | None
    ordered_at: float
    escalates: int | None = None
    """The stop that did not hold, if this is its escalation."""
    state: StopState = StopState.INTENDED
    outcome: Outcome | None = None
    detail: str = ""
    finished_at: float | None = None

    @classmethod
    def intended(
        cls, session: Session, incident: Incident | None, *, ordered_by: int | None, now: float
    ) -> Self:
        """Return the intent to stop a session, for an incident's reason or by a person's order alone."""
        target = Target(
            source=session.source,
            session=session.session,
            agent=session.agent,
            reason=incident.reason if incident else "ordered",
            score=incident.score if incident else 0,
            pid=session.pid,
            pid_since_ts=session.pid_since_ts,
            last_ts=session.last_ts,
        )
        return cls(
            id=0,
            session_id=session.id,
            incident_id=incident.id if incident else None,
            target=target,
            ordered_by=ordered_by,
            ordered_at=now,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Confirmation:
    """A destructive button: who may press it, in which message, until when, and for which target."""

    nonce: str
    session_id: int
    pid: int | None
    """The process at the time of asking; another one is another target."""
    user_id: int
    chat_id: int
    outgoing_id: int
    """The outbox row of the message that carries the button."""
    expires_at: float
    used_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Received:
    """An update of Telegram, kept until it is handled."""

    id: int
    update_id: int
    body: str
    """JSON, as it came."""
    received_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatState:
    """What is known of a chat that messages go to."""

    id: int
    moved_to: int | None = None
    """The supergroup that it has become."""
    pace: Pace = field(default_factory=Pace)
    held_at: float = 0
    """When `free_at` was set; a clock that shows less has been set back since, and `free_at` means nothing."""
    free_at: float = 0
    """Nothing is sent to it before."""
    lost_at: float | None = None
    """Since when it takes no messages."""


class Workflows(Protocol):
    """How every workflow stands."""

    async def all(self) -> Mapping[str, WorkflowState]: ...
    async def get(self, name: str) -> WorkflowState | None: ...
    async def save(self, state: WorkflowState) -> WorkflowState: ...


class Reports(Protocol):
    """Runs to be verified."""

    async def add(self, report: Report) -> Report: ...
    async def waiting(self, workflow: str | None = None) -> Sequence[Report]: ...
    async def next_of(self, workflows: Collection[str]) -> Report | None: ...
    async def stray(self, workflows: Collection[str], before: float) -> Report | None: ...
    async def waits(self, report_id: int) -> bool: ...
    async def count(self) -> int: ...
    async def remove(self, report_id: int) -> None: ...


class Runs(Protocol):
    """Every run."""

    async def get(self, run_id: int) -> Run | None: ...
    async def find(self, workflow: str, key: str) -> Run | None: ...
    async def told(self, workflow: str, after: int, before: int, limit: int) -> Sequence[int]: ...
    async def claim(self, run_id: int, reported: str) -> None: ...
    async def put(self, run: Run) -> Run:
        """Return the run with this workflow and key, which is inserted if it is new."""
        ...


class Verdicts(Protocol):
    """The history."""

    async def add(self, verdict: RecordedVerdict) -> RecordedVerdict: ...
    async def newest_of(self, run_id: int) -> RecordedVerdict | None: ...
    async def of_run(self, run_id: int) -> Sequence[RecordedVerdict]: ...
    async def page(
        self, workflow: str | None, outcome: RunOutcome | None, before: int | None, limit: int
    ) -> Sequence[RecordedVerdict]: ...
    async def good_run(self, workflow: str, before: int | None) -> int | None: ...
    async def judging(self, workflow: str, output: Sighting) -> Sequence[RecordedVerdict]: ...
    async def past_of(
        self, workflow: str, *, before_run: int | None, but: Sighting | None = None
    ) -> Past: ...


class Pins(Protocol):
    """Every version of an entry that was approved."""

    async def all(self) -> Sequence[Pin]:
        """Return every row, oldest first."""
        ...

    async def marks(self) -> Sequence[tuple[int, str]]:
        """Return of every row its id and a digest of all of it: what tells whether any was added, altered or removed."""
        ...

    async def newest(self) -> int:
        """Return the id of the newest row, 0 if there is none."""
        ...

    async def in_force(self) -> Sequence[Pin]:
        """Return the newest usable pin of every entry that was not removed, in the order in which they were first approved."""
        ...

    async def of(self, kind: Kind, name: str) -> Pin | None:
        """Return the pin of one entry that is in force."""
        ...

    async def add(self, pin: Pin) -> Pin: ...
    async def put_back(self, pin: Pin) -> None:
        """Have a row be what it was, with its id, whatever has become of it."""
        ...


class Proposals(Protocol):
    """What the file says otherwise; of each entry at most one is open."""

    async def get(self, proposal_id: int) -> Proposal | None: ...
    async def newest(self) -> Sequence[Proposal]:
        """Return the newest proposal of every entry that has one."""
        ...

    async def marks(self) -> Sequence[tuple[int, str]]:
        """Return of every row its id and state."""
        ...

    async def add(self, proposal: Proposal) -> Proposal: ...
    async def save(self, proposal: Proposal) -> None: ...


class GoodOutputs(Protocol):
    """The last good output of every workflow."""

    async def of(self, workflow: str) -> GoodOutput | None: ...
    async def sha256_of(self, workflow: str) -> str | None: ...
    async def keep(self, output: GoodOutput) -> None:
        """Put it in the place of the workflow's last one."""
        ...


class SelfTests(Protocol):
    """Every self-test."""

    async def add(self, test: SelfTest) -> SelfTest: ...
    async def latest(self) -> Mapping[str, SelfTest]:
        """Return the newest of every workflow, by its name."""
        ...


_SHORTEST_ABSENCE: Final = 60.0
_BEATS_MISSED: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Absence:
    """A length of time in which nobody watched, in epoch seconds."""

    id: int = 0
    since: float
    until: float


def absence_of(before: float | None, now: float, every: float) -> Absence | None:
    """Return the absence between two looks (`before` None: there was none yet) that should be `every` seconds apart."""
    if before is None or now - before <= max(_SHORTEST_ABSENCE, _BEATS_MISSED * every):
        return None
    return Absence(since=before, until=now)


class Absences(Protocol):
    """When nobody watched."""

    async def add(self, absence: Absence) -> None: ...
    async def between(self, since: float, until: float) -> Sequence[Absence]:
        """Return those that touch a length of time, oldest first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A digest as the chat was told it."""

    id: int = 0
    week: str | None
    """Such as `2026-W48`; None: somebody has asked for it."""
    until: float
    body: str | None
    """JSON of `digest.Digest`; None marks the week before the first one."""
    at: float


class Digests(Protocol):
    """Every digest; a week has at most one."""

    async def get(self, digest_id: int) -> Told | None: ...
    async def of_week(self, week: str) -> Told | None: ...
    async def newest_week(self, now: float) -> Told | None:
        """Return the digest of the latest week that was over at `now`, and told by then."""
        ...

    async def begun_at(self) -> float | None:
        """Return when a bot first looked which weeks are to be told; None if none ever has."""
        ...

    async def add(self, told: Told) -> Told: ...
    async def save(self, told: Told) -> None: ...


class RunCounts(Protocol):
    """What became of runs and checks: counted anew, or kept of weeks that are over."""

    async def between(self, since: float, until: float) -> Figures: ...
    async def first_at(self) -> float | None:
        """Return when the first of the runs was judged that can be counted."""
        ...

    async def rates(self) -> Sequence[WeekRate]:
        """Return the rate of every week that figures are kept of, oldest first."""
        ...

    async def kept(self, first: str, last: str) -> Mapping[str, Figures]:
        """Return the figures that are kept of the weeks from `first` to `last`, by week."""
        ...

    async def history(self, workflow: str, first: str, last: str) -> Mapping[str, Figures]:
        """Return those of one workflow."""
        ...

    async def keep(self, week: str, figures: Figures) -> None: ...


class Cursors(Protocol):
    """How far each file has been read."""

    async def of_source(self, source: str) -> Mapping[str, Cursor]: ...
    async def save(self, source: str, cursors: Mapping[str, Cursor]) -> None: ...


class Sessions(Protocol):
    """Every session seen."""

    async def of_source(self, source: str, names: Sequence[str]) -> Mapping[str, Session]: ...
    async def get(self, session_id: int) -> Session | None: ...
    async def named(self, source: str, name: str, since: float, limit: int) -> Sequence[Session]: ...
    async def save(self, session: Session) -> Session: ...
    async def save_all(self, sessions: Sequence[Session]) -> None: ...


class Incidents(Protocol):
    """Every incident; a session has at most one that is not closed."""

    async def unclosed(self) -> Mapping[int, Incident]: ...
    async def unclosed_of(self, session_id: int) -> Incident | None: ...
    async def get(self, incident_id: int) -> Incident | None: ...
    async def add(self, incident: Incident) -> Incident: ...
    async def save(self, incident: Incident) -> None: ...


class Stops(Protocol):
    """Every order to stop a session; a session has at most one that is only intended."""

    async def get(self, stop_id: int) -> Stop | None: ...
    async def in_state(self, state: StopState) -> Sequence[Stop]: ...
    async def intended_of(self, session_id: int) -> Stop | None: ...
    async def latest_of(self, session_ids: Sequence[int]) -> Sequence[Stop]: ...
    async def held(self, since: float, until: float) -> Sequence[Stop]:
        """Return the stops that put an incident to its end in a length of time, oldest first."""
        ...

    async def add(self, stop: Stop) -> Stop: ...
    async def save(self, stop: Stop) -> None: ...


class Outbox(Protocol):
    """Messages still to be sent. `home` is the chat of those that name none."""

    async def put(self, outgoing: Outgoing, now: float) -> int: ...
    async def told_at(self, subject: str) -> float | None: ...
    async def is_told(self, subject: str, since: float) -> bool: ...
    async def last_told(self, subject: str) -> str | None: ...
    async def due(self, now: float, home: str) -> Queued | None: ...
    async def next_at(self, now: float, home: str) -> float | None: ...
    async def lease(self, outgoing_id: int) -> None: ...
    async def leased(self, home: str) -> Sequence[Queued]: ...
    async def mark_sent(self, outgoing_id: int, message: int | None, now: float) -> None: ...
    async def put_back(self, outgoing_id: int, error: str) -> None: ...
    async def park(self, outgoing_id: int, error: str) -> None: ...
    async def move(self, old: int, new: int, home: str) -> None: ...
    async def unpark(self, chat_id: int, since: float, home: str) -> int: ...


class Chats(Protocol):
    """Where each chat is, and when it may be written to."""

    async def get(self, chat_id: int) -> ChatState: ...
    async def save(self, chat: ChatState) -> None: ...
    async def lost(self) -> Sequence[ChatState]: ...
    async def current(self, address: str) -> str: ...


class Presence(Protocol):
    """When the bot last looked."""

    async def last(self) -> float | None: ...
    async def note(self, now: float) -> None: ...


class RunTables(Protocol):
    """The tables of runs, and the outbox."""

    @property
    def workflows(self) -> Workflows: ...
    @property
    def reports(self) -> Reports: ...
    @property
    def runs(self) -> Runs: ...
    @property
    def verdicts(self) -> Verdicts: ...
    @property
    def pins(self) -> Pins: ...
    @property
    def proposals(self) -> Proposals: ...
    @property
    def good_outputs(self) -> GoodOutputs: ...
    @property
    def selftests(self) -> SelfTests: ...
    @property
    def presence(self) -> Presence: ...
    @property
    def outbox(self) -> Outbox: ...


class DigestTables(Protocol):
    """The tables that a digest is composed from."""

    @property
    def pins(self) -> Pins: ...
    @property
    def selftests(self) -> SelfTests: ...
    @property
    def incidents(self) -> Incidents: ...
    @property
    def stops(self) -> Stops: ...
    @property
    def presence(self) -> Presence: ...
    @property
    def absences(self) -> Absences: ...
    @property
    def digests(self) -> Digests: ...
    @property
    def counts(self) -> RunCounts: ...


class Tables(RunTables, DigestTables, Protocol):
    """All tables of one connection."""

    @property
    def cursors(self) -> Cursors: ...
    @property
    def sessions(self) -> Sessions: ...
    @property
    def chats(self) -> Chats: ...

    async def delete_older_than(self, limit: float, most: int) -> int:
        """Delete what was over before `limit` (epoch seconds), of each table at most so many rows; return how many."""
        ...


class Change(Protocol):
    """Something that will happen once."""

    def wait(self) -> Awaitable[object]: ...


class Store(Protocol):
    """The database: one writer at a time, readers beside it. While its file cannot be used it lives in memory."""

    trouble: str | None
    """Why the file is not in use; None while it is."""
    set_aside: Path | None
    """Where a damaged file was put when the one in use was begun."""
    knows_all: bool
    """Whether, when it was opened, there was nothing before that could not be read."""

    @property
    def reading(self) -> Tables:
        """The tables for questions."""
        ...

    @property
    def changed(self) -> Change:
        """Set, and another one in its place, when a transaction has ended: asked for before looking, nothing is missed."""
        ...

    def transaction(self) -> AbstractAsyncContextManager[Tables]:
        """Commit what the block wrote if it ends, undo it if it raises or is cancelled.

        A block within a block, in the same task, is a part of it: undone by itself, committed with the outer one. But a
        part that the file failed undoes the whole, which raises that failure at its end if nobody did before.
        """
        ...

    async def endure(self, error: BaseException) -> bool:
        """Go on in memory if `error` means that the file cannot be used; return whether that is so."""
        ...

    async def check(self) -> None:
        """Go on in memory if the file is not the one any more that was opened."""
        ...

    async def recover(self) -> bool:
        """Try the file again; return whether it is in use again."""
        ...


# ── the chat ──────────────────────────────────────────────────────────────────────────────────────


class NotifyError(Exception):
    """A message was not sent.

    `retry_after`: seconds after which its chat may be tried again; None: trying again is useless.
    `moved_to`: the chat's new id, to be tried instead. `is_chat_lost`: no other message would be taken, either.
    """

    def __init__(
        self,
        reason: str,
        *,
        retry_after: float | None = None,
        moved_to: int | None = None,
        is_chat_lost: bool = False,
    ) -> None:
        super().__init__(reason)
        self.retry_after = retry_after
        self.moved_to = moved_to
        self.is_chat_lost = is_chat_lost


class Notifier(Protocol):
    """Sends one message."""

    async def send(self, message: Queued) -> int | None:
        """Return the chat's id of the message, None if it is not known; raise `NotifyError` if it was not sent."""
        ...

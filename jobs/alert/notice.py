"""What the chat is told, as values; the words are made in `bot/views`."""

import msgspec

from jobs.alert.digest_notice import DigestNotice
from jobs.alert.outgoing import Notice
from jobs.alert.pin_notice import AlteredNotice, FirstUseNotice, LetGoNotice, ProposalNotice, ProposalsNotice
from jobs.alert.run_notice import RunNotice, UnverifiedNotice, VerifiedNotice
from jobs.alert.selftest_notice import SelftestNotice
from jobs.thrash.incident import Incident
from jobs.thrash.policy import OnDetection


class Outlook(msgspec.Struct, frozen=True, kw_only=True):
    """What an incident may come to."""

    can_stop: bool
    """Whether its source has a killer."""
    on_detection: OnDetection
    kill_after: int
    ask_grace: float
    """Seconds that the chat has to answer before a loop that goes on is stopped."""
    is_dry_run: bool = False
    """Whether the killer only says what it would do."""


class Starter(msgspec.Struct, frozen=True, kw_only=True):
    """What has started a sub-agent."""

    agent: str
    """Its name, or what the log calls its session if that is all that is known."""
    session: int | None = None
    """Its short id."""
    shares_process: bool = False
    """Whether one process is known to run both: a signal ends both."""


class IncidentNotice(Notice, frozen=True, kw_only=True):
    """An incident as it stands."""

    incident: Incident
    outlook: Outlook
    starter: Starter | None = None


class AskNotice(Notice, frozen=True, kw_only=True):
    """The agent will be stopped at `stops_at` (epoch seconds) if it goes on and nobody answers, while it is `asked`."""

    incident: Incident
    stops_at: float
    starter: Starter | None = None


class StopNotice(Notice, frozen=True, kw_only=True):
    """A stop was carried out, or failed."""

    session: int
    agent: str
    source: str
    incident: Incident | None
    """What it had come to, if the stop was about one."""
    reason: str
    outcome: str
    detail: str
    """In the killer's words: what happened, and what it saw."""
    took: float
    """Seconds."""
    ordered_by: int | None
    """The Telegram user who ordered it; None if the bot did."""
    escalated: bool
    starter: Starter | None = None


class StillRunningNotice(Notice, frozen=True, kw_only=True):
    """An agent that was stopped goes on."""

    session: int
    agent: str
    source: str
    incident: int | None
    pid: int | None
    """The process that still lives, if that is what was seen."""
    newest_ts: float
    """Its newest call."""
    stopped_at: float
    had_stopped: bool
    """Whether the stop had seemed to work."""
    escalating: bool
    """Whether one harder attempt follows; if not, a person must act."""
    starter: Starter | None = None


class WatchlistNotice(Notice, frozen=True, kw_only=True):
    """The watch list's file cannot be used (`error` says why), or can be again."""

    error: str | None


class PricesNotice(Notice, frozen=True, kw_only=True):
    """The watch list's prices have changed, and are in force."""


class StorageNotice(Notice, frozen=True, kw_only=True):
    """The database file cannot be used (`trouble` says why), or can be again."""

    trouble: str | None
    set_aside: str | None
    """The name that a damaged file was put aside under."""


class BackNotice(Notice, frozen=True, kw_only=True):
    """The bot is back after having been away, both in epoch seconds; what was going on then."""

    since: float
    back_at: float
    incidents: tuple[Incident, ...]


class JobFailedNotice(Notice, frozen=True, kw_only=True):
    """A job raised."""

    job: str
    error: str


class UndeliveredNotice(Notice, frozen=True, kw_only=True):
    """A message was given up, or a chat takes none any more; told to the other chats."""

    chat: str
    error: str
    is_chat_lost: bool


AnyNotice = (
    IncidentNotice
    | AskNotice
    | StopNotice
    | StillRunningNotice
    | WatchlistNotice
    | PricesNotice
    | StorageNotice
    | BackNotice
    | JobFailedNotice
    | UndeliveredNotice
    | RunNotice
    | UnverifiedNotice
    | VerifiedNotice
    | SelftestNotice
    | FirstUseNotice
    | LetGoNotice
    | ProposalNotice
    | ProposalsNotice
    | AlteredNotice
    | DigestNotice
)

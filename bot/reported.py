"""What a program says of a run that has ended: its own words, or the post of OpenClaw's cron."""

from typing import Final

import msgspec

LONGEST_RUN: Final = 200
_LONGEST_SAID: Final = 2000


class ReportError(Exception):
    """A report that makes no sense; one line, and none of its values in it."""


class Reported(msgspec.Struct, frozen=True, kw_only=True):
    """A run that has ended."""

    run: str | None = None
    """The reporter's own id of it."""
    said: str | None = None


class _Post(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What any other program sends."""

    run: str | int | None = None
    said: str | None = None


class _CronPost(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What OpenClaw sends when a run of a job is over."""

    job_id: str
    action: str
    run_at_ms: int | None = None
    session_id: str | None = None
    status: str | None = None
    error: str | None = None
    summary: str | None = None

    @property
    def is_of_a_run(self) -> bool:
        """Whether something ran, and has ended."""
        return self.action == "finished" and self.status != "skipped"

    @property
    def run(self) -> str | None:
        if self.session_id or self.run_at_ms is None:
            return self.session_id or None
        return f"{self.job_id}-{self.run_at_ms}"

    @property
    def said(self) -> str | None:
        status = f"status {self.status}" if self.status not in {None, "ok"} else None
        return "; ".join(part for part in (status, self.error, self.summary) if part) or None


def reported_in(body: bytes) -> Reported | None:
    """Return what a body says; None if it tells of no run that has ended.

    Raises:
        ReportError: it makes no sense.
    """
    if not body.strip():
        return Reported()
    try:
        given = msgspec.json.decode(body, type=dict[str, object])
        if "jobId" not in given:
            own = msgspec.convert(given, _Post)
            return _checked(None if own.run is None else f"{own.run}", own.said)
        post = msgspec.convert(given, _CronPost)
    except msgspec.ValidationError as error:
        raise ReportError(_what(str(error))) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise ReportError("the body is not JSON") from None
    return _checked(post.run, post.said) if post.is_of_a_run else None


def _checked(run: str | None, said: str | None) -> Reported:
    if run is not None and (flaw := flaw_of(run)):
        raise ReportError(f"run: {flaw}")
    return Reported(run=run, said=(said or "")[:_LONGEST_SAID] or None)


def flaw_of(run: str) -> str | None:
    """Return why a reporter's id of a run cannot be one: it may become a part of a file's name."""
    if not run.strip() or len(run) > LONGEST_RUN:
        return f"must be from 1 to {LONGEST_RUN} characters"
    if not run.isprintable() or "/" in run or ".." in run:
        return 'must not hold "/", ".." or what cannot be printed'
    return None


def _what(message: str) -> str:
    if message.startswith("Object contains unknown field"):
        return "unknown field; known: run, said"
    what, _, path = message.rpartition(" - at `$.")
    return f"{path.rstrip('`')}: {what.replace('`', '').lower()}" if what else "the body is no JSON object"

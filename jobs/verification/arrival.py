"""Has an output arrived? It has changed, and then stayed as it is for a while, or has not for too long."""

from dataclasses import dataclass

from jobs.verification.verdict import Sighting


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """An output that is not the one seen before, and may still be written. Times are epoch seconds."""

    output: Sighting
    since: float
    """When it was first found as it is."""
    began: float
    """When it was first found to differ from the one seen before; it may have changed again since."""
    came_at: float
    """When it was written; if it seems to be older than the last look, which had not found it, then."""
    is_late: bool
    """Whether it came while nobody watched."""
    is_settled: bool = False


def arrival_of(
    before: Arrival | None,
    output: Sighting,
    *,
    looked_at: float,
    is_late: bool,
    settle: float,
    patience: float,
    now: float,
) -> Arrival:
    """Return what is known of an output after a look, the one before having been at `looked_at`.

    It has settled when it stayed as it is for `settle`, or when it has been changing for `patience`.
    """
    if before and before.since > now:
        before = None
    began = now if before is None else before.began
    if before is None or before.output != output:
        since, came_at = now, min(max(output.mtime_ns / 1e9, looked_at), now)
    else:
        since, came_at, is_late = before.since, before.came_at, before.is_late
    return Arrival(
        output=output,
        since=since,
        began=began,
        came_at=came_at,
        is_late=is_late,
        is_settled=before is not None and (now - since >= settle or now - began >= patience),
    )

"""Whether what a workflow asks for can be answered at all."""

import math
from collections.abc import Collection, Iterator
from datetime import UTC, datetime
from typing import Final

from jobs.verification.path import PathError, parse_path
from jobs.verification.spec import (
    CountSpec,
    FieldSpec,
    Format,
    StatusSpec,
    WorkflowSpec,
)
from jobs.watchlist.entries import compiled
from jobs.watchlist.error import WatchlistError, key_of, unknown

_CRON_FIELDS: Final = 5
_ANY_MOMENT: Final = datetime(2026, 1, 1, tzinfo=UTC)


def check_workflow(spec: WorkflowSpec, place: str, sources: Collection[str]) -> None:
    """Raise WatchlistError for the first thing that makes no sense."""
    _check_format(spec, place)
    for path, where in _paths(spec, place):
        _check_path(path, where)
    for path, field in spec.fields.items():
        _check_field(field, f"{place}.fields.{key_of(path)}")
    if spec.status:
        _check_status(spec.status, f"{place}.status")
    if spec.size:
        _check_within(spec.size.within, f"{place}.size")
    if spec.count:
        _check_count(spec.count, f"{place}.count")
    for index, pattern in enumerate(spec.forbid):
        _check_forbidden(pattern, f"{place}.forbid[{index}]")
    _check_schedule(spec, place)
    if spec.after is not None:
        _check_after(spec.after, f"{place}.after", sources)


def _check_format(spec: WorkflowSpec, place: str) -> None:
    if spec.format.has_fields:
        return
    for key in ("required", "fields", "schema", "timestamp", "status"):
        if getattr(spec, key):
            raise WatchlistError(f"{place}.{key}: format {spec.format} has no fields")
    if spec.count and spec.count.of:
        raise WatchlistError(f"{place}.count.of: format {spec.format} has no fields")
    if spec.count and spec.format is Format.ANY:
        raise WatchlistError(f"{place}.count: format any has nothing that could be counted")


def _paths(spec: WorkflowSpec, place: str) -> Iterator[tuple[str, str]]:
    """Yield every path with where it stands."""
    for index, path in enumerate(spec.required):
        yield path, f"{place}.required[{index}]"
    for path in spec.fields:
        yield path, f"{place}.fields.{key_of(path)}"
    if spec.timestamp is not None:
        yield spec.timestamp, f"{place}.timestamp"
    if spec.status:
        yield spec.status.field, f"{place}.status.field"
    if spec.count and spec.count.of:
        yield spec.count.of, f"{place}.count.of"


def _check_path(path: str, place: str) -> None:
    try:
        parse_path(path)
    except PathError as error:
        raise WatchlistError(f"{place}: {error}") from None


def _check_field(field: FieldSpec, place: str) -> None:
    _check_range(field.min, field.max, place, "min", "max")
    _check_range(field.min_length, field.max_length, place, "min_length", "max_length")
    if field.pattern is not None:
        compiled(field.pattern, f"{place}.pattern")


def _check_range(least: float | None, most: float | None, place: str, low: str, high: str) -> None:
    for number, key in ((least, low), (most, high)):
        if number is not None and not math.isfinite(number):
            raise WatchlistError(f"{place}.{key}: must be a finite number")
        if number is not None and number < 0 and key.endswith("_length"):
            raise WatchlistError(f"{place}.{key}: must not be below 0")
    if least is not None and most is not None and least > most:
        raise WatchlistError(f"{place}.{low}: must not be above {high}")


def _check_status(status: StatusSpec, place: str) -> None:
    if not status.allowed:
        raise WatchlistError(f"{place}.allowed: must not be empty")


def _check_within(within: float, place: str) -> None:
    if not 0 < within < math.inf:
        raise WatchlistError(f"{place}.within: must be above 0; 0.5 is half of the median to either side")


def _check_count(count: CountSpec, place: str) -> None:
    if count.within is None and count.min is None and count.max is None:
        raise WatchlistError(f"{place}: needs min, max or within")
    _check_range(count.min, count.max, place, "min", "max")
    if count.within is not None:
        _check_within(count.within, place)


def _check_forbidden(pattern: str, place: str) -> None:
    if compiled(pattern, place).search(""):
        raise WatchlistError(f"{place}: must not match an empty text: it would be found in every output")


def _check_schedule(spec: WorkflowSpec, place: str) -> None:
    if spec.expect is not None and spec.every is not None:
        raise WatchlistError(f"{place}.every: not beside expect; a run is due by either")
    if spec.expect is not None:
        _check_cron(spec.expect, f"{place}.expect")


def _check_cron(expression: str, place: str) -> None:
    from cronsim import CronSim, CronSimError  # noqa: PLC0415 - takes longer to import than most watch lists to read

    if len(expression.split()) != _CRON_FIELDS:
        raise WatchlistError(f"{place}: must be five fields: minute, hour, day of month, month, day of week")
    try:
        CronSim(expression, _ANY_MOMENT)
    except CronSimError as error:
        raise WatchlistError(f"{place}: {str(error).lower()}") from None


def _check_after(after: str, place: str, sources: Collection[str]) -> None:
    source, _, name = after.partition(":")
    if not name:
        raise WatchlistError(f"{place}: must be SOURCE:NAME, of an agent or a session")
    if source not in sources:
        raise WatchlistError(f"{place}: {unknown('no source of that name', source, sources)}")

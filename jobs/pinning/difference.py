"""What a changed entry of the watch list does to the bar, told by comparing values."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from jobs.pinning.change import Change, Mark
from jobs.pinning.links import Killers, does_stop
from jobs.pinning.pin import Spec
from jobs.pinning.rules import (
    Rule,
    alike,
    argv,
    by_rank,
    files,
    is_set,
    less,
    more,
    more_is_looser,
    more_is_stricter,
    plain,
    schema_text,
    type_of_field,
)
from jobs.pinning.showing import size, text, time
from jobs.thrash.policy import OnDetection
from jobs.verification.spec import (
    BandSpec,
    CommandCheck,
    CountSpec,
    FieldSpec,
    Format,
    StatusSpec,
    WorkflowSpec,
)
from jobs.watchlist.killers import CommandSpec, DryRunSpec, ProcessSpec
from jobs.watchlist.sources import SourceSpec

_SHOWN_FIRST: Final = (Mark.LOOSER, Mark.DIFFERENT, Mark.STRICTER)
_DETECTION: Final = (OnDetection.OBSERVE, OnDetection.ASK, OnDetection.STOP)


def difference(
    before: Spec | None, after: Spec | None, default: OnDetection, killers: Killers | None = None
) -> tuple[Change, ...]:
    """Return the fields that differ: looser ones first, stricter ones last.

    None: there is no such entry. `default` is what a source does that does not say what a detection leads to. `killers`
    are those in force; None: that is not known, and each that is named is taken for one that stops.
    """
    if after is None:
        return () if before is None else tuple(_lost(before))
    changes = _new(after) if before is None else _entries(before, after, default, killers)
    return tuple(sorted(changes, key=lambda change: _SHOWN_FIRST.index(change.mark)))


def _new(spec: Spec) -> Iterator[Change]:
    """Yield what it says that is not what is meant without."""
    usual = {field.name: field.default for field in msgspec.structs.fields(spec)}
    if (kind := _kind_of(spec)) is not None:
        yield Change(field="kind", before="", after=kind, mark=Mark.DIFFERENT)
    yield from _all("", spec, Mark.DIFFERENT, {**usual, "name": getattr(spec, "name", None)})


def _lost(spec: Spec) -> Iterator[Change]:
    for change in _new(spec):
        yield msgspec.structs.replace(_gone(change), mark=Mark.LOOSER)


def _entries(before: Spec, after: Spec, default: OnDetection, killers: Killers | None) -> Iterator[Change]:
    named = by_rank(lambda name: does_stop(name, killers))
    if type(before) is type(after):
        rules = {"on_detection": _detection(default), "killer": named, "then": named}
        yield from _structs("", before, after, {**_RULES[type(after)], **rules})
    else:
        yield from _killers(before, after, named)


def _structs(
    place: str, before: msgspec.Struct, after: msgspec.Struct, rules: Mapping[str, Rule]
) -> Iterator[Change]:
    for name in after.__struct_fields__:
        was, is_now = getattr(before, name), getattr(after, name)
        if was != is_now:
            yield from rules.get(name, plain)(f"{place}{name}", was, is_now)


def _killers(before: Spec, after: Spec, named: Rule) -> Iterator[Change]:
    """Of two kinds what each says is told; only what comes after a stop that did not hold is said by both."""
    yield from by_rank(lambda kind: kind != "dry_run")("kind", _kind_of(before), _kind_of(after))
    old, new = (getattr(spec, "then", None) for spec in (before, after))
    if old != new:
        yield from named("then", old, new)
    yield from map(_gone, _all("", before, Mark.DIFFERENT, {"then": old}))
    yield from _all("", after, Mark.DIFFERENT, {"then": new})


def _table(place: str, before: msgspec.Struct | None, after: msgspec.Struct | None) -> Iterator[Change]:
    """Whatever it says, it asks for something: where there was none that is stricter."""
    if before is not None and after is not None:
        yield from _structs(f"{place}.", before, after, _RULES[type(after)])
        return
    yield from () if before is None else map(_gone, _any(place, before, Mark.LOOSER))
    yield from () if after is None else _any(place, after, Mark.STRICTER)


def _fields(
    place: str, before: Mapping[str, FieldSpec] | None, after: Mapping[str, FieldSpec] | None
) -> Iterator[Change]:
    old, new = before or {}, after or {}
    for path in dict.fromkeys((*old, *new)):
        if old.get(path) != new.get(path):
            yield from _table(f"{place}.{path}", old.get(path), new.get(path))


def _any(place: str, table: msgspec.Struct, mark: Mark) -> list[Change]:
    """Return all that a table says: one that says nothing is one, too."""
    said = list(_all(f"{place}.", table, mark, {}))
    return said or [msgspec.structs.replace(each, mark=mark) for each in plain(place, None, "any value")]


def _all(place: str, spec: msgspec.Struct, mark: Mark, usual: Mapping[str, object]) -> Iterator[Change]:
    for name in spec.__struct_fields__:
        value = getattr(spec, name)
        if value not in (None, "", (), {}) and value != usual.get(name):
            for change in _RULES[type(spec)].get(name, plain)(f"{place}{name}", None, value):
                yield msgspec.structs.replace(change, mark=mark)


def _gone(change: Change) -> Change:
    return msgspec.structs.replace(change, before=change.after, after="")


def _kind_of(spec: Spec) -> str | None:
    tag = spec.__struct_config__.tag
    return tag if isinstance(tag, str) else None


def _detection(default: OnDetection) -> Rule:
    return by_rank(
        lambda value: _DETECTION.index(value or default),
        lambda value: text(value) or f"{default}, by default",
    )


_RULES: Final[Mapping[type, Mapping[str, Rule]]] = {
    WorkflowSpec: {
        "format": by_rank(lambda value: {Format.ANY: 0, Format.TEXT: 1}.get(value, 2)),
        "required": more_is_stricter,
        "placeholders": more_is_stricter,
        "fields": _fields,
        "schema": is_set,
        "schema_text": schema_text,
        "max_age": less(time),
        "status": _table,
        "unchanged": by_rank(bool),
        "size": _table,
        "count": _table,
        "forbid": more_is_stricter,
        "command": _table,
        "max_size": less(size),
        "expect": is_set,
        "every": less(time),
        "grace": less(time),
        "after": is_set,
        "settle": alike(time),
    },
    FieldSpec: {
        "type": type_of_field,
        "min": more(),
        "max": less(),
        "min_length": more(),
        "max_length": less(),
        "pattern": is_set,
    },
    StatusSpec: {"allowed": more_is_looser},
    BandSpec: {"within": less()},
    CountSpec: {"within": less(), "min": more(), "max": less()},
    CommandCheck: {"argv": argv, "timeout": less(time), "files": files},
    SourceSpec: {},
    CommandSpec: {"argv": argv, "timeout": less(time), "files": files},
    ProcessSpec: {"grace": less(time)},
    DryRunSpec: {},
}
"""Where none is named, neither of two values is stricter."""

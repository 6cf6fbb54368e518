"""What it means that a field has another value: a rule each, which yields one change at least.

None: there is no such field there.
"""

import math
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from jobs.pinning.change import Change, Mark
from jobs.pinning.leaves import leaves_that_differ
from jobs.pinning.showing import Show, pieces, text, visible
from jobs.verification.spec import Kind
from jobs.verification.wording import number

# Values come as msgspec has decoded them, each of the type that its field has.
Rule = Callable[[str, Any, Any], Iterator[Change]]
Rank = Callable[[Any], float]
"""The higher, the stricter; of two that are level neither is."""

_DIGITS: Final = 8
_LONGEST: Final = 170
"""Characters of a field's place; the rest of what a line may hold says where in its value."""
_KEPT: Final = 80
"""Characters at either end of a longer one."""


def by_rank(rank: Rank, show: Show = text) -> Rule:
    """Compare two values by what they are worth."""

    def rule(field: str, before: object, after: object) -> Iterator[Change]:
        yield from _changes(field, before, after, _mark(rank(before), rank(after)), show)

    return rule


def alike(show: Show) -> Rule:
    """Neither of two values is stricter."""
    return by_rank(lambda _: 0, show)


def less(show: Show = text) -> Rule:
    """Of two limits the lower one is stricter; none is no limit."""
    return by_rank(lambda limit: -math.inf if limit is None else -limit, show)


def more(show: Show = text) -> Rule:
    """Of two limits the higher one is stricter."""
    return by_rank(lambda limit: -math.inf if limit is None else limit, show)


plain: Final = alike(text)
is_set: Final = by_rank(lambda value: value is not None)
argv: Final = alike(lambda words: shlex.join(words) if isinstance(words, Sequence) else "")


def _elements(added: Mark, gone: Mark) -> Rule:
    """Tell of each element that was added, or is gone; of their order only if nothing else differs."""

    def rule(field: str, before: Sequence[str] | None, after: Sequence[str] | None) -> Iterator[Change]:
        old, new = dict.fromkeys(before or ()), dict.fromkeys(after or ())
        if before is None or after is None or old.keys() == new.keys():
            yield from _changes(field, before, after, Mark.DIFFERENT, _joined)
            return
        for each in old:
            if each not in new:
                yield from _changes(field, each, None, gone, text)
        for each in new:
            if each not in old:
                yield from _changes(field, None, each, added, text)

    return rule


more_is_stricter: Final = _elements(added=Mark.STRICTER, gone=Mark.LOOSER)
more_is_looser: Final = _elements(added=Mark.LOOSER, gone=Mark.STRICTER)


def type_of_field(field: str, before: Kind | None, after: Kind | None) -> Iterator[Change]:
    """A whole number is a number, too; of other types none holds another."""
    numbers = {Kind.NUMBER: 0, Kind.INTEGER: 1}
    if before in numbers and after in numbers:
        yield from by_rank(lambda kind: numbers[kind])(field, before, after)
    else:
        yield from is_set(field, before, after)


def files(field: str, before: Mapping[str, str] | None, after: Mapping[str, str] | None) -> Iterator[Change]:
    """Tell of each file whose content is another one; where no contents were filled in, any file is run."""
    old, new = before or {}, after or {}
    if old == new:
        yield from by_rank(lambda each: each is not None, _bound)(field, before, after)
    for path in dict.fromkeys((*old, *new)):
        if old.get(path) != new.get(path):
            yield from _changes(f"content of {path}", old.get(path), new.get(path), Mark.DIFFERENT, _digest)


def schema_text(_: str, before: str | None, after: str | None) -> Iterator[Change]:
    """Tell of each value in it; of all that is written in what is no JSON, or new, or gone."""
    whole = "content of the schema"
    if before is None or after is None:
        yield from by_rank(lambda text: text is not None, _raw)(whole, before, after)
        return
    leaves = leaves_that_differ(before, after)
    for path, old, new in leaves:
        yield from _changes(f"schema{path}", old or None, new or None, Mark.DIFFERENT, _raw)
    if not leaves:
        yield from _changes(whole, before, after, Mark.DIFFERENT, _raw)


# ── marks and words ───────────────────────────────────────────────────────────────────────────────


def _changes(field: str, before: object, after: object, mark: Mark, show: Show) -> Iterator[Change]:
    for at, old, new in pieces(before, after, show):
        place = _shortened(visible(field))
        if at:
            place += f", from character {number(at + 1)}"
        yield Change(field=place, before=old, after=new, mark=mark)


def _shortened(field: str) -> str:
    """Return a field's place without its middle, if it is long: it ends in what is asked for there."""
    return field if len(field) <= _LONGEST else f"{field[:_KEPT]}…{field[-_KEPT:]}"


def _mark(before: float, after: float) -> Mark:
    if before == after:
        return Mark.DIFFERENT
    return Mark.STRICTER if before < after else Mark.LOOSER


def _joined(words: object) -> str:
    return ", ".join(map(text, words)) if isinstance(words, Sequence) else ""


def _bound(contents: object) -> str:
    return "any content" if contents is None else "the content approved"


def _digest(value: object) -> str:
    return f"sha256 {value[:_DIGITS]}" if isinstance(value, str) else ""


def _raw(value: object) -> str:
    return value if isinstance(value, str) else ""

"""YAML, strictly: one document, no duplicate key, no infinite number, and aliases that do not explode."""

import binascii
import math
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from jobs.verification.wording import LARGEST, UnmetError, ill_formed, one_line, shown

_DEEPEST: Final = 200
_MOST_EXPANDED: Final = 1_000_000
"""Values that aliases may stand for."""
_CHARACTERS: Final = 64
"""Of a text that count for one value."""

_TAG: Final = "tag:yaml.org,2002:"
_MERGE: Final = f"{_TAG}merge"
_BINARY: Final = f"{_TAG}binary"
_AS_WRITTEN: Final = frozenset(f"{_TAG}{name}" for name in ("str", "timestamp", "binary", "merge", "value"))
"""Times stay texts: so they are told apart by what is written, a zone or none."""
_READ: Final = frozenset(f"{_TAG}{name}" for name in ("null", "bool", "int", "float"))
_COLLECTIONS: Final = frozenset(
    (None, "!", *(f"{_TAG}{name}" for name in ("seq", "map", "set", "omap", "pairs")))
)

_Loader: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""In C where it is built so. Any: neither's methods are annotated."""


def parse_yaml(text: str) -> object:
    """Return the value of a YAML document. Raises UnmetError."""
    try:
        return _built(_Loader(text))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise ill_formed("YAML", f"{one_line(error.problem or '', 200)}{_place(mark)}") from None
    except yaml.YAMLError as error:
        raise ill_formed("YAML", one_line(str(error), 200)) from None


def _place(mark: Any) -> str:
    return f" at line {mark.line + 1} column {mark.column + 1}" if mark else ""


def _built(loader: Any) -> object:
    builder = _Builder(loader)
    try:
        while loader.check_event():
            builder.take(loader.get_event())
    finally:
        loader.dispose()
    return builder.document()


@dataclass(slots=True)
class _Array:
    anchor: str | None
    size: int = 1
    value: list[object] = field(default_factory=list)

    def add(self, value: object) -> None:
        self.value.append(value)


@dataclass(slots=True)
class _Table:
    anchor: str | None
    size: int = 1
    value: dict[str, object] = field(default_factory=dict)
    keys: set[str] = field(default_factory=set)
    key: str | None = None
    """Whose value is next."""
    is_merge: bool = False
    """Whether that value is another table, to be taken into this one."""

    def add(self, value: object) -> None:
        key, self.key = self.key, None
        if not self.is_merge:
            self.value[key or ""] = value
            return
        for other in value if isinstance(value, list) else [value]:
            if not isinstance(other, dict):
                raise UnmetError("<< is no table, expected one")
            self.value = other | self.value


class _Builder:
    """Makes a value of the events that a document is read as: nothing here recurses, whatever the document's depth."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader
        self._open: list[_Array | _Table] = []
        self._root: list[object] = []
        self._anchored: dict[str, tuple[object, int]] = {}
        self._expanded = 0

    def document(self) -> object:
        if not self._root:
            raise UnmetError("holds no document, expected one")
        return self._root[0]

    def take(self, event: yaml.Event) -> None:
        match event:
            case yaml.DocumentStartEvent() if self._root:
                raise UnmetError(f"a second document{_place(event.start_mark)}, expected one")
            case yaml.ScalarEvent():
                self._take_scalar(event)
            case yaml.AliasEvent():
                self._take_alias(event)
            case yaml.SequenceStartEvent():
                self._begin(event, _Array(event.anchor))
            case yaml.MappingStartEvent():
                self._begin(event, _Table(event.anchor))
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                ended = self._open.pop()
                self._put(ended.value, ended.size, ended.anchor)

    def _begin(self, event: yaml.CollectionStartEvent, opened: _Array | _Table) -> None:
        if len(self._open) == _DEEPEST:
            raise UnmetError(
                f"nested deeper than {_DEEPEST} levels{_place(event.start_mark)}, expected at most so many"
            )
        if event.tag not in _COLLECTIONS:
            raise _unknown_tag(event.tag, event.start_mark)
        self._refuse_as_key(event)
        self._open.append(opened)

    def _take_scalar(self, event: yaml.ScalarEvent) -> None:
        _refuse_half_characters(event)
        tag = self._tag(event)
        table = self._open[-1] if self._open else None
        if isinstance(table, _Table) and table.key is None:
            _name(table, event, is_merge=tag == _MERGE)
            self._anchor(event.anchor, event.value, 1)
        else:
            self._put(self._value(tag, event), 1 + len(event.value) // _CHARACTERS, event.anchor)

    def _tag(self, event: yaml.ScalarEvent) -> str:
        if event.tag is None or event.tag == "!":
            return str(self._loader.resolve(yaml.ScalarNode, event.value, event.implicit))
        return str(event.tag)

    def _value(self, tag: str, event: yaml.ScalarEvent) -> object:
        if tag in _AS_WRITTEN:
            if tag == _BINARY:
                _check_base64(event)
            return event.value
        if tag not in _READ:
            raise _unknown_tag(tag, event.start_mark)
        try:
            # Not by `construct_object`, which keeps whatever it has made.
            construct = self._loader.yaml_constructors[tag]
            value: object = construct(self._loader, yaml.ScalarNode(tag, event.value))
        except (ValueError, LookupError, yaml.YAMLError):
            raise UnmetError(
                f"{shown(event.value)}{_place(event.start_mark)} is no {tag.removeprefix(_TAG)}, expected one"
            ) from None
        if isinstance(value, int) and abs(value) >= LARGEST:
            raise UnmetError(
                f"a number of more than 4,300 digits{_place(event.start_mark)}, more than can be held"
            )
        if isinstance(value, float) and not math.isfinite(value):
            raise UnmetError(
                f"{shown(event.value)}{_place(event.start_mark)} is no finite number, expected one"
            )
        return value

    def _take_alias(self, event: yaml.AliasEvent) -> None:
        self._refuse_as_key(event)
        if event.anchor not in self._anchored:
            raise UnmetError(
                f"an alias{_place(event.start_mark)} stands for nothing that came before, expected its anchor there"
            )
        value, size = self._anchored[event.anchor]
        self._expanded += size
        if self._expanded > _MOST_EXPANDED:
            raise UnmetError(
                f"aliases stand for more than {_MOST_EXPANDED:,} values{_place(event.start_mark)},"
                " expected at most so many"
            )
        self._put(value, size, None)

    def _refuse_as_key(self, event: yaml.Event) -> None:
        if self._open and isinstance(table := self._open[-1], _Table) and table.key is None:
            raise UnmetError(f"a key{_place(event.start_mark)} is no plain value, expected one")

    def _put(self, value: object, size: int, anchor: str | None) -> None:
        self._anchor(anchor, value, size)
        if not self._open:
            self._root.append(value)
            return
        self._open[-1].size += size
        self._open[-1].add(value)

    def _anchor(self, anchor: str | None, value: object, size: int) -> None:
        if anchor is not None:
            self._anchored[anchor] = value, size


def _check_base64(event: yaml.ScalarEvent) -> None:
    try:
        binascii.a2b_base64("".join(event.value.split()), strict_mode=True)
    except ValueError:
        raise UnmetError(
            f"{shown(event.value)}{_place(event.start_mark)} is no binary, expected base64"
        ) from None


def _refuse_half_characters(event: yaml.ScalarEvent) -> None:
    # The parser that is not in C takes "\ud800".
    try:
        event.value.encode()
    except UnicodeEncodeError:
        raise UnmetError(
            f"half of a surrogate pair{_place(event.start_mark)} is no character, expected a whole one"
        ) from None


def _name(table: _Table, event: yaml.ScalarEvent, *, is_merge: bool) -> None:
    """Take a key: its text as it is written, so that a path can name it."""
    if event.value in table.keys:
        raise UnmetError(
            f"the key {shown(event.value)} a second time{_place(event.start_mark)}, expected it once"
        )
    table.keys.add(event.value)
    table.key = event.value
    table.is_merge = is_merge


def _unknown_tag(tag: str | None, mark: Any) -> UnmetError:
    return UnmetError(f"the tag {shown(tag)}{_place(mark)} is none of YAML's own, expected one of those")

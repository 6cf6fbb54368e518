"""Outputs that are not, or not only, what their format says; each is so by the format's grammar."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from jobs.verification.rewriting import csv_of, yaml_of
from jobs.verification.spec import Format
from jobs.verification.specimen import Bad, Specimen
from jobs.verification.spots import unused

_NO_TEXT: Final = b"\xff"
_MARK: Final = b"\xef\xbb\xbf"
_JSON_STRUCTURE: Final = rb'"(?:[^"\\]|\\.)*+"|([,:])'
_TOML_PAIR: Final = rb'(?m)^(?:[\w-]+|"(?:[^"\\]|\\.)*+") (=) .*$'


def of_bytes(good: Specimen) -> Iterator[Bad]:
    """Yield what does not parse. Of bytes of any kind there is nothing like that."""
    if good.form is Format.ANY:
        return
    # In JSON within a text, where it is overlooked the sooner.
    within = good.data.find(b'"') + 1 or len(good.data) // 2
    yield Bad("blanked", b" \n")
    yield Bad("invalid UTF-8", good.data[:within] + _NO_TEXT + good.data[within:])
    yield Bad("byte order mark", _MARK + good.data)
    yield Bad("in UTF-16", good.data.decode().encode("utf-16"))
    yield Bad("NUL byte", good.data + b"\0")
    if good.form in _GRAMMARS:
        yield from _GRAMMARS[good.form](good)


def _json(good: Specimen) -> Iterator[Bad]:
    return _of_json(good.data.strip(), good.root)


def _jsonl(good: Specimen) -> Iterator[Bad]:
    before, end, line = good.data.strip().rpartition(b"\n")
    for bad in _of_json(line, good.root[-1]):
        yield Bad(bad.name, before + end + bad.data)
    yield Bad("blank line", good.data.strip() + b"\n\n")


def _of_json(text: bytes, value: Any) -> Iterator[Bad]:
    yield Bad("second value after the end", text + b" 0")
    # Of a bare number what is left is one, too.
    if isinstance(value, str | list | dict):
        yield Bad("last byte cut", text[:-1])
        yield Bad("cut in the middle", text[: max(len(text) // 2, 1)])
        yield Bad("first byte flipped", _flipped(text, 0))
        yield Bad("last byte flipped", _flipped(text, len(text) - 1))
    inner = {found[1]: found.start() for found in re.finditer(_JSON_STRUCTURE, text, re.DOTALL)}
    for byte in (b":", b","):
        if byte in inner:
            yield Bad(f"{byte.decode()} flipped", _flipped(text, inner[byte]))
    if isinstance(value, dict) and value:
        first, new = msgspec.json.encode(next(iter(value))), msgspec.json.encode(next(unused(value)))
        yield Bad("duplicate key", b"{" + first + b":null," + text[1:])
        yield Bad("NaN", b"{" + new + b":NaN," + text[1:])
        yield Bad("number without bounds", b"{" + new + b":1e999," + text[1:])
    if isinstance(value, list) and value:
        yield Bad("NaN", b"[NaN," + text[1:])
        yield Bad("number without bounds", b"[1e999," + text[1:])


def _flipped(data: bytes, at: int) -> bytes:
    """Flip the lowest bit of a byte: of none that structures a text is the result another one that does."""
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


def _csv(good: Specimen) -> Iterator[Bad]:
    header, rows = list(good.header), [list(row.values()) for row in good.root]
    yield Bad("quote left open", good.data + b'"')
    yield Bad("row too long", csv_of([header, *rows, [*header, "added"]]))
    yield Bad("column without a name", csv_of([[*header[:-1], " "], *rows]))
    if len(header) == 1:
        return
    yield Bad("row too short", csv_of([header, *rows, header[:-1]]))
    yield Bad("column named twice", csv_of([[*header[:-1], header[0]], *rows]))
    if rows and b'"' not in good.data:
        yield Bad("comma flipped", _flipped(good.data, good.data.rindex(b",")))


def _toml(good: Specimen) -> Iterator[Bad]:
    yield Bad("line that is no pair", good.data + b"\nno pair\n")
    yield Bad("NaN", f"{next(unused(good.root))} = nan\n".encode() + good.data)
    # As it is written anew no text and no key takes more than one line.
    text = good.written(good.root)
    pairs = list(re.finditer(_TOML_PAIR, text))
    if pairs:
        pair = pairs[-1]
        yield Bad("cut after =", text[: pair.end(1)])
        yield Bad("= flipped", _flipped(text, pair.start(1)))
        yield Bad("duplicate key", text[: pair.start()] + pair[0] + b"\n" + text[pair.start() :])


def _yaml(good: Specimen) -> Iterator[Bad]:
    yield Bad("second document", good.data + b"\n---\nsecond: true\n")
    if not isinstance(good.root, list | dict):
        return
    # Between brackets: of YAML in lines the first half is YAML, too.
    text = yaml_of(good.root, is_flow=True).strip()
    yield Bad("last byte cut", text[:-1])
    yield Bad("cut in the middle", text[: len(text) // 2])
    yield Bad("last byte flipped", _flipped(text, len(text) - 1))
    nan = float("nan")
    if isinstance(good.root, list):
        yield Bad("NaN", yaml_of([*good.root, nan]))
        return
    yield Bad("NaN", yaml_of({**good.root, next(unused(good.root)): nan}))
    if good.root:
        first = yaml_of({next(iter(good.root)): 0}, is_flow=True).strip()
        yield Bad("duplicate key", first[:-1] + b", " + text[1:])


_GRAMMARS: Final[Mapping[Format, Callable[[Specimen], Iterator[Bad]]]] = {
    Format.JSON: _json,
    Format.JSONL: _jsonl,
    Format.CSV: _csv,
    Format.TOML: _toml,
    Format.YAML: _yaml,
}

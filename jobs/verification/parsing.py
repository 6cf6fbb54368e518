"""An output's content as values: the whole of it, strictly."""

import math
from collections.abc import Callable, Iterator, Sequence
from datetime import date, time
from typing import Final, assert_never

import msgspec

from jobs.verification.encoding import decoded
from jobs.verification.json_text import parse_json, parse_jsonl
from jobs.verification.path import Path, column, places, values, without
from jobs.verification.rows import Rows
from jobs.verification.spec import Format
from jobs.verification.wording import LARGEST, LONGEST_VALUE, UnmetError, ill_formed, one_line, quantity

_EVERY: Final[Path] = (None,)
_TOO_LONG: Final = "a number of more than 4,300 digits, more than can be held"


class Document(msgspec.Struct, frozen=True, kw_only=True):
    """What an output says."""

    format: Format
    root: object = None
    """Its value; the list of the records, if it is a sequence of them, or its `Rows`; the text; None of `any`."""

    def values(self, path: Path) -> Sequence[object]:
        """Return what lies at a path, in every record if there are records."""
        if isinstance(self.root, Rows):
            return self.root.cells(column(path))
        return values(self.root, self._full(path))

    def places(self, path: Path) -> Iterator[tuple[str, object]]:
        """Yield each of `values` with its own path, and its record."""
        if not self.format.has_records:
            yield from places(self.root, path)
            return
        inner = (column(path),) if path and self.format is Format.CSV else path
        for index, record in enumerate(self._records()):
            for where, value in places(record, inner):
                yield f"{self._record_name(index)}: {where}", value

    def _records(self) -> Iterator[object]:
        return self.root.tables() if isinstance(self.root, Rows) else iter(values(self.root, _EVERY))

    def checked(self, path: Path, complaint: Callable[[object], str | None]) -> Sequence[object]:
        """Return what lies at a path. Raises UnmetError, with its own path, for the first that there is a complaint about."""
        found = self.values(path)
        if any(complaint(value) for value in found):
            raise UnmetError(
                next(f"{where}{text}" for where, value in self.places(path) if (text := complaint(value)))
            )
        return found

    def less(self, path: Path) -> object:
        """Return all that it says less what lies at a path."""
        return (
            self.root.less(column(path))
            if isinstance(self.root, Rows)
            else without(self.root, self._full(path))
        )

    def _full(self, path: Path) -> Path:
        """Return a path as it leads from the root: over every record, if there are records."""
        return _EVERY + path if self.format.has_records else path

    def _record_name(self, index: int) -> str:
        """Return `line 1` for the first of jsonl, `row 2` for the first of csv: row 1 is the header."""
        return f"row {index + 2}" if self.format is Format.CSV else f"line {index + 1}"


def parse(data: bytes, form: Format) -> Document:
    """Return what an output says. Raises UnmetError."""
    return Document(format=form, root=_root(data, form))


def _root(data: bytes, form: Format) -> object:  # noqa: PLR0911 - one for each format
    match form:
        case Format.JSON:
            return parse_json(data)
        case Format.JSONL:
            return parse_jsonl(data)
        case Format.CSV:
            from jobs.verification.csv_text import parse_csv  # noqa: PLC0415 - only where it is needed: to start quickly

            return parse_csv(data)
        case Format.TOML:
            return _parse_toml(decoded(data))
        case Format.YAML:
            from jobs.verification.yaml_text import parse_yaml  # noqa: PLC0415 - only where it is needed: to start quickly

            return parse_yaml(decoded(data))
        case Format.TEXT:
            return decoded(data)
        case Format.ANY:
            return None
    assert_never(form)


def _parse_toml(text: str) -> object:
    import tomllib  # noqa: PLC0415 - only where it is needed: to start quickly

    try:
        return _written(tomllib.loads(text, parse_float=_finite))
    except RecursionError:
        raise ill_formed("TOML", "nested too deeply") from None
    except tomllib.TOMLDecodeError as error:
        said = one_line(str(error), 200)
        raise ill_formed("TOML", f"{said[:1].lower()}{said[1:]}") from None
    except UnmetError:
        raise
    except ValueError:
        raise UnmetError(_TOO_LONG) from None


def _written(value: object) -> object:
    """Return a value of TOML with its times as the texts that they are in all other formats."""
    match value:
        case dict():
            return {key: _written(inner) for key, inner in value.items()}
        case list():
            return [_written(inner) for inner in value]
        case date() | time():
            return value.isoformat()
        case int() if abs(value) >= LARGEST:
            raise UnmetError(_TOO_LONG)
        case _:
            return value


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise UnmetError(f"{one_line(text, LONGEST_VALUE)} is no finite number, expected one")
    return number


def summary(document: Document, data: bytes) -> str:
    """Return what was parsed, in a few words."""
    root = document.root
    match document.format:
        case Format.JSONL | Format.CSV if isinstance(root, list | Rows):
            return quantity(len(root), "record")
        case Format.TEXT:
            return f"{quantity(line_count(data), 'line')} of text"
        case other:
            return f"{other.upper()}"


def line_count(data: bytes) -> int:
    """Return the number of lines; the last needs no end."""
    return data.count(b"\n") + (not data.endswith(b"\n") and bool(data))

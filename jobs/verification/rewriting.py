"""Values written as an output of a format."""

from collections.abc import Sequence
from typing import Any, Final, assert_never

import msgspec

from jobs.verification.spec import Format

_ONE_LINE: Final = 1 << 30
"""A width that no line has."""


def rewritten(root: Any, form: Format, header: Sequence[str] = ()) -> bytes:
    """Return values as an output: records as a list of them, rows as tables; `header` is of a csv that has none."""
    match form:
        case Format.JSON:
            return msgspec.json.encode(root)
        case Format.JSONL:
            return b"".join(msgspec.json.encode(record) + b"\n" for record in root)
        case Format.CSV:
            return csv_of([list(root[0] if root else header), *(list(row.values()) for row in root)])
        case Format.TOML:
            from tomli_w import dumps  # noqa: PLC0415 - only where it is needed: to start quickly

            return dumps(root).encode()
        case Format.YAML:
            return yaml_of(root)
        case Format.TEXT | Format.ANY:
            raise ValueError(f"{form} has no values")
    assert_never(form)


def csv_of(rows: Sequence[Sequence[str]]) -> bytes:
    """Return rows, the header first, as CSV."""
    import csv  # noqa: PLC0415 - only where it is needed: to start quickly
    from io import StringIO  # noqa: PLC0415

    text = StringIO()
    # Only of what ends its own lines does the writer know that a value needs quotes for it.
    csv.writer(text, lineterminator="\r\n").writerows(rows)
    return text.getvalue().encode()


def yaml_of(root: object, *, is_flow: bool = False) -> bytes:
    """Return values as YAML; in flow style arrays and tables are between brackets."""
    import yaml  # noqa: PLC0415 - only where it is needed: to start quickly

    written: str = yaml.dump(
        root,
        Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper),
        default_flow_style=is_flow,
        width=_ONE_LINE,
        allow_unicode=True,
        sort_keys=False,
    )
    return written.encode()


def can_hold(form: Format, value: object) -> bool:
    """Whether a format can say a value, below its root."""
    if form is Format.CSV:
        return isinstance(value, str)
    return form is not Format.TOML or value is not None

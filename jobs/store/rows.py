"""Between rows and values: a column for every field, structs as JSON text."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, get_args

import msgspec

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Value = TypeVar("Value")
Values = Sequence[object] | Mapping[str, object]


class Cursor(Protocol):
    """What a statement has done."""

    @property
    def lastrowid(self) -> int | None: ...
    @property
    def rowcount(self) -> int: ...


class Executing(AbstractAsyncContextManager[Cursor], Awaitable[Cursor], Protocol):
    """A statement, to be awaited or entered."""


class Connection(Protocol):
    """What the tables need of a connection: aiosqlite's, or one that blocks."""

    def execute(self, sql: str, parameters: Values = ..., /) -> Executing: ...
    def executemany(self, sql: str, parameters: Iterable[Sequence[object]], /) -> Awaitable[object]: ...
    def execute_fetchall(self, sql: str, parameters: Values = ..., /) -> Awaitable[Iterable[Any]]: ...


async def fetch(
    connection: Connection,
    kind: type[Value],
    sql: str,
    values: Values = (),
) -> list[Value]:
    """Return the rows of a query, whose columns are named as the fields of `kind`, a dataclass."""
    # All in one go: as long as one look is under way, others over the same connection see what it sees, and not what
    # was committed since.
    rows = await connection.execute_fetchall(sql, values)
    decoders = _decoders(kind)
    return [_value(kind, dict(row), decoders) for row in rows]


async def insert(connection: Connection, table: str, value: "DataclassInstance") -> int:
    """Insert a value, its id chosen by the table, and return that id."""
    row = _row(value)
    async with connection.execute(_insertion(table, row), tuple(row.values())) as cursor:
        return cursor.lastrowid or 0


async def insert_all(connection: Connection, table: str, values: Iterable["DataclassInstance"]) -> None:
    """Insert values, their ids chosen by the table."""
    rows = [_row(value) for value in values]
    if rows:
        await connection.executemany(_insertion(table, rows[0]), [tuple(row.values()) for row in rows])


async def update(connection: Connection, table: str, value: "DataclassInstance", row_id: int) -> None:
    """Overwrite the row with this id."""
    await update_all(connection, table, {row_id: value})


async def update_all(connection: Connection, table: str, values: Mapping[int, "DataclassInstance"]) -> None:
    """Overwrite the rows with these ids."""
    rows = [(row_id, _row(value)) for row_id, value in values.items()]
    if rows:
        names = ", ".join(f"{name} = ?" for name in rows[0][1])
        sql = f"UPDATE {table} SET {names} WHERE id = ?"  # noqa: S608 - names from our own code
        await connection.executemany(sql, [(*row.values(), row_id) for row_id, row in rows])


def _insertion(table: str, row: Mapping[str, object]) -> str:
    marks = ", ".join("?" * len(row))
    return f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})"  # noqa: S608 - names from our own code


def _row(value: "DataclassInstance") -> dict[str, object]:
    named = {field.name: getattr(value, field.name) for field in fields(value) if field.name != "id"}
    return {
        name: msgspec.json.encode(inner).decode() if isinstance(inner, msgspec.Struct) else inner
        for name, inner in named.items()
    }


def _decoders(kind: type[Any]) -> dict[str, Callable[[Any], object]]:
    """Return what makes a field of a column that holds something else."""
    found = {field.name: _decoder(field.type) for field in fields(kind)}
    return {name: decoder for name, decoder in found.items() if decoder is not None}


def _decoder(kind: Any) -> Callable[[Any], object] | None:
    if kind is bool:
        return bool
    for some in (kind, *get_args(kind)):
        if isinstance(some, type) and issubclass(some, msgspec.Struct):
            return msgspec.json.Decoder(some).decode
    return None


def _value(kind: type[Value], row: dict[str, Any], decoders: dict[str, Callable[[Any], object]]) -> Value:
    for name, decode in decoders.items():
        if row[name] is not None:
            row[name] = decode(row[name])
    return msgspec.convert(row, type=kind)

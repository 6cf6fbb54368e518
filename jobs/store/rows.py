"""Between rows and values: a column for every field, structs as JSON text."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar

import aiosqlite
import msgspec

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

Value = TypeVar("Value")


async def fetch(
    connection: aiosqlite.Connection,
    kind: type[Value],
    sql: str,
    values: Sequence[object] | Mapping[str, object] = (),
) -> list[Value]:
    """Return the rows of a query, whose columns are named as the fields of `kind`, a dataclass."""
    # All in one go: as long as one look is under way, others over the same connection see what it sees, and not what
    # was committed since.
    rows = await connection.execute_fetchall(sql, values)
    structs = _struct_fields(kind)
    return [_value(kind, dict(row), structs) for row in rows]


async def insert(connection: aiosqlite.Connection, table: str, value: "DataclassInstance") -> int:
    """Insert a value, its id chosen by the table, and return that id."""
    row = _row(value)
    async with connection.execute(_insertion(table, row), tuple(row.values())) as cursor:
        return cursor.lastrowid or 0


async def insert_all(
    connection: aiosqlite.Connection, table: str, values: Iterable["DataclassInstance"]
) -> None:
    """Insert values, their ids chosen by the table."""
    rows = [_row(value) for value in values]
    if rows:
        await connection.executemany(_insertion(table, rows[0]), [tuple(row.values()) for row in rows])


async def update(
    connection: aiosqlite.Connection, table: str, value: "DataclassInstance", row_id: int
) -> None:
    """Overwrite the row with this id."""
    await update_all(connection, table, {row_id: value})


async def update_all(
    connection: aiosqlite.Connection, table: str, values: Mapping[int, "DataclassInstance"]
) -> None:
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


def _struct_fields(kind: type[Any]) -> dict[str, type[msgspec.Struct]]:
    return {
        field.name: field.type
        for field in fields(kind)
        if isinstance(field.type, type) and issubclass(field.type, msgspec.Struct)
    }


def _value(kind: type[Value], row: dict[str, Any], structs: dict[str, type[msgspec.Struct]]) -> Value:
    for name, struct in structs.items():
        row[name] = msgspec.json.decode(row[name], type=struct)
    return msgspec.convert(row, type=kind)

"""Tells which format a database has by the tables in it."""

import os.path
import sqlite3
from collections.abc import Sequence
from contextlib import closing

from jobs.sources.sqlite_rows import has_tables, opened
from jobs.sources.sqlite_talk import Kind, Problem, Recognise
from jobs.sources.table_format import RowLimits, TableFormat


def recognise(request: Recognise, formats: Sequence[TableFormat]) -> Kind | Problem:
    """Return which of the formats is the first that a database has all of."""
    try:
        with closing(opened(os.path.abspath(request.path), RowLimits())) as database:
            found = next((index for index, form in enumerate(formats) if _answers(database, form)), None)
            tables = database.execute("SELECT 1 FROM sqlite_master").fetchone()
    except sqlite3.OperationalError as error:
        return Problem(text=str(error))
    except sqlite3.DatabaseError:
        return Kind(format=None, is_database=False)
    return Kind(format=found, has_tables=tables is not None)


def _answers(database: sqlite3.Connection, form: TableFormat) -> bool:
    """Whether a database has all that the format asks for; nothing of it is read."""
    if not has_tables(database, form):
        return False
    try:
        database.execute(f"EXPLAIN {form.heads}").close()
        database.execute(f"EXPLAIN {form.rows}", ("", 0, 0)).close()
    except sqlite3.OperationalError as error:
        if "no such" in str(error):
            return False
        raise
    return True

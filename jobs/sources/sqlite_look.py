"""One look at one database: what has come since the last one, session by session, and what is remembered of it.

Of each session the number of the last row is remembered, for the sessions that were written to last. Of all others it
is known how new their newest entry may be: should one go on, only what is newer is told.
"""

import os.path
import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from typing import Any, Final

import msgspec
from msgspec import Raw

from jobs.sources.fields import NOTHING
from jobs.sources.line_reader import LineReader
from jobs.sources.sqlite_rows import Head, Place, Reading, Row, format_of, heads, newest, opened, take
from jobs.sources.sqlite_talk import Beginning, Look, NearEnd, Problem, Told
from jobs.sources.table_format import RowLimits, TableFormat
from jobs.thrash.call import Answer, ToolCall, Usage

_KEPT: Final = 200
"""So many sessions of a database are remembered, those that were written to last."""
_KEPT_BEHIND: Final = 5000
"""And about so many while there are others that have not been read: what is older of those is lost otherwise."""


class _Known(msgspec.Struct, array_like=True, gc=False):
    """What has been read of one session."""

    number: int = -1
    """Of the last row."""
    ts: float = 0
    """Of the newest entry."""
    after: float = -1.0
    """What is not newer than this was told before the session was forgotten, or its rows were replaced."""
    touched: float = 0
    """When it was last written to, or later."""
    memory: Raw = NOTHING
    """The reader's state."""


class _Kept(msgspec.Struct, omit_defaults=True):
    """What is remembered of a database."""

    sessions: dict[str, _Known] = {}
    forgotten: float = -1.0
    """No row of a session that is not remembered has been read that is newer than this."""
    newest: Place | None = None
    """Of the row that was written last before the last complete look."""


_decode_kept: Final = msgspec.json.Decoder(_Kept).decode


def _no_entries() -> dict[type, list[Any]]:
    return {ToolCall: [], Answer: [], Usage: []}


class _Look(msgspec.Struct, kw_only=True):
    """How far a look has come."""

    database: Reading
    form: TableFormat
    path: str
    limits: RowLimits
    kept: _Kept
    forgotten: float
    """As it was before the look."""
    entries: dict[type, list[Any]] = msgspec.field(default_factory=_no_entries)
    """By kind."""
    size: int = 0
    """Of the rows that `entries` are from."""
    unreadable: int = 0
    """Of those rows."""

    def read_sessions(self) -> Generator[Told | Problem, None, bool]:
        """Yield what is new but for the last part; return whether that is all there was."""
        left, failed = self.limits.look, None
        for head in self._unread():
            if len(self.kept.sessions) > 2 * _KEPT_BEHIND:
                _forget(self.kept, _KEPT_BEHIND)
            try:
                for size in self._read_session(head):
                    left -= size
                    if left <= 0:
                        text = f"{self.path} is very large: the rest of it is left for the next look."
                        yield Problem(text=text)
                        return False
                    if self.size >= self.limits.chunk:
                        yield self.told(is_whole=False)
            except sqlite3.OperationalError:
                yield self.told(is_whole=False)
                raise
            except sqlite3.Error as error:  # its pages are damaged, not those of others
                failed = error
        _forget(self.kept, _KEPT)
        if failed:
            yield Problem(text=f"{self.path} cannot be read as a whole: {failed}.")
        return failed is None

    def told(self, *, is_whole: bool) -> Told:
        """Return what has been read since the last time."""
        entries = self.entries
        told = Told(
            calls=entries[ToolCall],
            answers=entries[Answer],
            usages=entries[Usage],
            size=self.size,
            unreadable=self.unreadable,
            state=msgspec.json.encode(self.kept).decode(),
            is_whole=is_whole,
        )
        self.entries, self.size, self.unreadable = _no_entries(), 0, 0
        return told

    def _unread(self) -> list[Head]:
        """Return the sessions of which there is more, those first that fell silent first."""
        unread = []
        for head in heads(self.database, self.form, self.kept.newest):
            known = self.kept.sessions.get(head.key)
            if head.touched > self.kept.forgotten if known is None else head.number != known.number:
                unread.append(head)
        return sorted(unread, key=lambda head: head.touched)

    def _read_session(self, head: Head) -> Iterator[int]:
        """Take in what is new of one session, and yield after each chunk how many bytes that were."""
        known = self.kept.sessions.setdefault(head.key, _Known(after=self.forgotten))
        if head.number < known.number:  # its rows were replaced
            known.number, known.after, known.memory = -1, known.ts, NOTHING
        state = "" if known.memory == NOTHING else bytes(known.memory).decode()
        known.touched = max(known.touched, head.touched)
        with self.database.timed():
            reader = self.form.reader(self.database, self.path, head.session, state)
        while known.number < head.number:
            with self.database.timed():
                rows, size = take(self.database, self.form, head, known.number, self.limits)
            self._take_in(known, reader, rows)
            self.size += size
            if not rows:
                known.number = head.number
            known.memory = Raw(reader.state().encode()) or NOTHING
            yield size

    def _take_in(self, known: _Known, reader: LineReader, rows: Sequence[Row]) -> None:
        """Read a session's next rows."""
        read, after, newest = reader.read, known.after, known.ts
        add = {kind: entries.append for kind, entries in self.entries.items()}
        for _, record in rows:
            found = None if record is None else read(record)
            if found is None:
                self.unreadable += 1
                continue
            for entry in found:
                ts = entry.ts
                if ts > after:
                    add[type(entry)](entry)
                    if ts > newest:  # noqa: PLR1730 - `max` takes three times as long
                        newest = ts
        known.ts, known.number = newest, rows[-1][0] if rows else known.number


def look(request: Look, formats: Sequence[TableFormat]) -> Iterator[Told | Problem]:
    """Read what is new in a database that is of one of these formats."""
    try:
        with closing(opened(request.path, request.limits)) as database:
            yield from _look(request, database, format_of(database, formats))
    except Exception as error:  # noqa: BLE001 - one database never keeps the others from being read
        if os.path.exists(request.path):  # else it was deleted since it was found
            yield Problem(text=_refused(request.path, error))


def _look(request: Look, database: Reading, form: TableFormat) -> Iterator[Told | Problem]:
    before, kept = newest(database, form), _kept_in(request.state)
    if kept is None:
        kept = _taken_as_read(heads(database, form, None), request.now)
        text = f"{request.path} is read from its end on: how far it had been read is not known."
        yield Problem(text=text)
    look = _Look(
        database=database,
        form=form,
        path=request.path,
        limits=request.limits,
        kept=kept,
        forgotten=kept.forgotten,
    )
    is_whole = yield from look.read_sessions()
    if is_whole:
        kept.newest = before
    yield look.told(is_whole=is_whole)


def near_end(request: NearEnd, formats: Sequence[TableFormat]) -> Beginning | Problem:
    """Return a place before the last rows of the sessions written to last."""
    try:
        with closing(opened(request.path, RowLimits())) as database:
            found = heads(database, format_of(database, formats), None)
    except sqlite3.Error as error:
        return Problem(text=_refused(request.path, error))
    found.sort(key=lambda head: head.touched, reverse=True)
    newest, others = found[: request.sessions], found[request.sessions :]
    kept = _Kept(forgotten=max((head.touched for head in others), default=-1.0))
    for head in newest:
        kept.sessions[head.key] = _Known(number=max(head.number - request.rows, -1), touched=head.touched)
    is_all = not others and all(head.number < request.rows for head in found)
    return Beginning(state=msgspec.json.encode(kept).decode(), is_all=is_all)


def _refused(path: str, error: Exception) -> str:
    if getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT" or str(error) == "interrupted":
        return f"{path} takes too long to read: the rest of it is left for the next look."
    why = "that takes too much memory" if isinstance(error, MemoryError) else error
    return f"{path} cannot be read: {why}."


def _kept_in(state: str | None) -> _Kept | None:
    """Return what is remembered, None if that is lost."""
    if state is None:
        return _Kept()
    try:
        return _decode_kept(state)
    except (ValueError, RecursionError):
        return None


def _taken_as_read(found: Sequence[Head], now: float) -> _Kept:
    """Remember all that there is as told."""
    kept = _Kept()
    for head in found:
        ts = min(head.touched, now)
        kept.sessions[head.key] = _Known(number=head.number, ts=ts, touched=head.touched)
    _forget(kept, _KEPT)
    return kept


def _forget(kept: _Kept, most: int) -> None:
    """Forget the sessions that have been silent for longest if there are many."""
    times = {key: max(known.touched, known.ts) for key, known in kept.sessions.items()}
    for key in sorted(times, key=times.__getitem__, reverse=True)[most:]:
        kept.forgotten = max(kept.forgotten, times[key])
        del kept.sessions[key]

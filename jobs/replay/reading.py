"""A log is read to its end, in as many looks as that takes."""

from collections.abc import Iterator, Mapping

from jobs.ports import Batch, CallSource, Cursor


def read_all(source: CallSource, now: float) -> Iterator[Batch]:
    """Yield all that a source holds, but for what comes after a whole look in which there was nothing to read."""
    cursors: dict[str, Cursor] = {}
    is_going_on = True
    while is_going_on:
        # A look leaves the rest of a very long file for the next one. Some files cannot be read on, and a hole of
        # exabytes, which costs its writer nothing, has looks without end.
        before, size = dict(cursors), 0
        for batch in source.read_new(before, now):
            cursors[batch.path] = batch.cursor
            size += batch.size
            yield batch
        is_going_on = are_behind(cursors) and (size > 0 or _states(cursors) != _states(before))


def are_behind(cursors: Mapping[str, Cursor]) -> bool:
    """Whether there is more than has been read."""
    return any(cursor.is_behind for cursor in cursors.values())


def _states(cursors: Mapping[str, Cursor]) -> list[str]:
    return [cursor.state for cursor in cursors.values()]

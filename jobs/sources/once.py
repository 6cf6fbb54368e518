"""What is told once: logs repeat what they have told, mostly soon."""

from typing import Final, TypeVar

Mark = TypeVar("Mark")

MOST_OPEN: Final = 1000
"""So many calls that wait for their answers are remembered of a log: to some, such as a killed program's, none comes."""
_KEPT_OF_ID: Final = 16
"""Characters at its end: one that is new needs no more to be told apart."""


def key(given: str) -> str:
    """Return what is remembered of an id."""
    return given[-_KEPT_OF_ID:]


def is_new(given: str, known: dict[str, Mark], mark: Mark, most: int) -> bool:
    """Whether an id is not among the `known` ones, newest last; then it is added, and of more than `most` the oldest goes."""
    end = given[-_KEPT_OF_ID:]
    if end in known:
        return False
    known[end] = mark
    if len(known) > most:
        del known[next(iter(known))]
    return True

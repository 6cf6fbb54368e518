"""How one version of an entry differs from another, field by field."""

from enum import StrEnum

import msgspec


class Mark(StrEnum):
    """What a change does to the bar."""

    STRICTER = "stricter"
    LOOSER = "looser"
    DIFFERENT = "different"
    """Which of the two cannot be told by comparing values."""


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """One field that says something else, or a piece of one that is long; values are one line of at most 200 characters."""

    field: str
    """Such as `max_age`, `fields.total.min`, `required`."""
    before: str
    after: str
    """Empty: nothing was, or is, said."""
    mark: Mark

"""What the picture of a digest shows, as values that its process is handed. Imports next to nothing."""

import msgspec


class Bar(msgspec.Struct, frozen=True, kw_only=True):
    """One check of a workflow, or several together."""

    workflow: str = ""
    """Empty: of several."""
    place: int = 0
    """Which of the digest's workflows it is, counted from 1."""
    check: str
    passed: int
    failed: int
    not_reached: int = 0


class Rate(msgspec.Struct, frozen=True, kw_only=True):
    """The runs of one week."""

    week: str
    """As it stands below: `48`."""
    passed: int
    failed: int


class Picture(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be drawn. Every word in it is fit to be shown."""

    title: str
    dates: str
    headline: str
    summary: str
    rates: tuple[Rate, ...]
    """Oldest first."""
    bars: tuple[Bar, ...]


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """What the process that draws is told."""

    picture: Picture
    seconds: float
    memory: int

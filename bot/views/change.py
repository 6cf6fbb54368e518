"""What is different between two versions of an entry: a line for each field."""

from typing import Final

from aiogram.utils.formatting import Bold, Code, Italic, Text

from bot.views.cleaning import clean
from jobs.pinning.change import Change, Mark
from jobs.verification.wording import is_plain

_LONGEST: Final = 400
"""UTF-16 units of a field or a value: room for 200 characters of any kind, more of which no change has."""


def marked(mark: Mark) -> Text:
    """Return the word for it: the looser ones stand out."""
    return Bold(mark) if mark is Mark.LOOSER else Italic(mark)


def change_line(change: Change) -> Text:
    """Say what a field was, what it would be, and what that does to the bar."""
    return Text(_code(change.field), ": ", *_values(change), "  ", marked(change.mark))


def said_line(change: Change) -> Text:
    """Say what a field of a new entry is."""
    return Text(_code(change.field), ": ", _code(change.after))


def _values(change: Change) -> list[Text | str]:
    before, after = (_code(value) if value else "nothing" for value in (change.before, change.after))
    if _shown(before) != _shown(after):
        return [before, " → ", after]
    # What differs only in what cannot be seen must not look like no change.
    before, after = _code(ascii(change.before)), _code(ascii(change.after))
    return [
        before,
        " → ",
        after,
        " (differs in what is not shown)" if _shown(before) == _shown(after) else "",
    ]


def not_pinned_line(words: str) -> Text:
    """Say what no pin holds still."""
    return Text("Not pinned: ", _code(words))


def _code(foreign: str) -> Code:
    """Return foreign text in one line, with every blank in it."""
    shown = foreign if is_plain(foreign) else ascii(foreign)
    return Code(" ".join(clean(shown, _LONGEST).splitlines()) or "?")


def _shown(part: Text | str) -> str:
    return part if isinstance(part, str) else part.render()[0]

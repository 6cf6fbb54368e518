"""Text as the chat takes it: foreign names that become no link, and whole messages within Telegram's limit."""

from typing import Final, NamedTuple

from aiogram.types import MessageEntity
from aiogram.utils.formatting import Code, Text

from bot.views.cleaning import ELLIPSIS, NAME_LIMIT, clean, cut, one_line, units

MESSAGE_LIMIT: Final = 4096
"""UTF-16 units in one message."""


def name(text: str, limit: int = NAME_LIMIT) -> Code:
    """Return a foreign name in a form where nothing inside becomes a link, a mention or a command."""
    return Code(one_line(text, limit))


def flat(text: str, limit: int) -> str:
    """Return foreign text fit to be shown in one line, as it is written but for its blanks."""
    return " ".join(clean(text, limit).split()) or "?"


def path(text: str, limit: int = 200) -> Code:
    """Return a file's path; of one that is too long, the end tells more."""
    cut_off = len(text) > limit
    return Code(f"{ELLIPSIS if cut_off else ''}{flat(text[-limit + 1 :] if cut_off else text, limit)}")


class Rendered(NamedTuple):
    """A text with its entities, within the limit of one message."""

    text: str
    entities: list[MessageEntity]


def fit(content: Text, limit: int = MESSAGE_LIMIT) -> Rendered:
    """Render a text and cut it, entities included, to what one message may hold."""
    text, entities = content.render()
    short = cut(text, limit)
    end = units(short)
    kept = [
        entity.model_copy(update={"length": min(entity.length, end - entity.offset)})
        for entity in entities
        if entity.length and entity.offset < end
    ]
    return Rendered(short, kept)

"""What a message looks like: text, entities, buttons."""

from aiogram.types import InlineKeyboardButton, InlineKeyboardMarkup, MessageEntity
from aiogram.utils.formatting import Text
from pydantic import BaseModel

from bot.views.text import fit


class Screen(BaseModel, frozen=True):
    """One message, ready to be sent."""

    text: str
    entities: list[MessageEntity]
    keyboard: InlineKeyboardMarkup | None = None

    @property
    def body(self) -> bytes:
        """The JSON that the outbox keeps."""
        return self.model_dump_json(exclude_none=True).encode()


def screen(content: Text, *rows: list[InlineKeyboardButton]) -> Screen:
    """Put a text and rows of buttons together."""
    text, entities = fit(content)
    keyboard = InlineKeyboardMarkup(inline_keyboard=list(rows)) if rows else None
    return Screen(text=text, entities=entities, keyboard=keyboard)


def lines(*parts: Text | str | None) -> Text:
    """Put one part on each line; None leaves the line out."""
    kept = [part for part in parts if part is not None]
    joined: list[Text | str] = []
    for part in kept:
        joined += ["\n", part] if joined else [part]
    return Text(*joined)

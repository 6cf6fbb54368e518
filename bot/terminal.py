"""A chat in the terminal: messages as panels, buttons by number, words as typed."""

import asyncio
import sys
import threading
from collections.abc import AsyncIterator
from typing import Final

from rich.console import Console
from rich.panel import Panel
from rich.text import Text

from bot.console import ConsoleSession, Shown

_WIDTH: Final = 88
_STYLES: Final = {"bold": "bold", "code": "cyan", "pre": "cyan", "italic": "italic"}


class Terminal:
    """Prints what the bot shows and turns what is typed into messages and presses."""

    def __init__(self) -> None:
        self.session = ConsoleSession(self._show)
        self._out = Console(highlight=False, soft_wrap=False)
        self._buttons: list[tuple[Shown, str]] = []

    def note(self, text: str) -> None:
        """Print a line that is not part of the chat."""
        self._out.print(Text(text, style="dim"))

    def type(self, text: str) -> None:
        """Write to the bot."""
        self._out.print(
            Panel(Text(text), title="You", title_align="right", width=_WIDTH, border_style="green")
        )
        self.session.type(text)

    def press(self, shown: Shown, label: str) -> None:
        """Press a button."""
        self._out.print(
            Text(f"You press [{label}] under message {shown.id}", style="green"),
            justify="right",
            width=_WIDTH,
        )
        self.session.press(shown, label)

    def enter(self, line: str) -> None:
        """Take a line from the keyboard: a number presses a button, anything else is written to the bot."""
        if not line.isascii() or not line.isdigit():
            self.session.type(line)
        elif 1 <= int(line) <= len(self._buttons):
            shown, label = self._buttons[int(line) - 1]
            if label in shown.buttons:
                self.session.press(shown, label)
            else:
                self.note("That button is gone.")
        else:
            self.note(f"There is no button {line}.")

    def _show(self, shown: Shown) -> None:
        text = _styled(shown)
        for label in shown.buttons:
            self._buttons.append((shown, label))
            text.append("\n" if label == next(iter(shown.buttons)) else "   ")
            text.append(f"[{len(self._buttons)}] {label}", style="bold magenta")
        self._out.print(
            Panel(text, title=_title(shown), title_align="left", width=_WIDTH, border_style="blue")
        )


async def typed_lines() -> AsyncIterator[str]:
    """Yield the lines of standard input until it ends."""
    loop, lines = asyncio.get_running_loop(), asyncio.Queue[str | None]()

    def read() -> None:
        for line in sys.stdin:
            loop.call_soon_threadsafe(lines.put_nowait, line.strip())
        loop.call_soon_threadsafe(lines.put_nowait, None)

    # A daemon, since a blocked read cannot be ended; it must not keep the program from exiting.
    threading.Thread(target=read, daemon=True).start()
    while (line := await lines.get()) is not None:
        yield line


def _title(shown: Shown) -> str:
    edited = " (edited)" if shown.edits else ""
    reply = f", answering {shown.reply_to}" if shown.reply_to else ""
    picture = ", a picture, which a terminal cannot show" if shown.picture else ""
    return f"Loopwarden · message {shown.id}{edited}{reply}{picture}"


def _styled(shown: Shown) -> Text:
    text = Text(shown.text)
    encoded = shown.text.encode("utf-16-le")
    for entity in shown.entities:
        # Entities count in UTF-16 units, rich in characters.
        start = len(encoded[: 2 * entity.offset].decode("utf-16-le", "ignore"))
        end = len(encoded[: 2 * (entity.offset + entity.length)].decode("utf-16-le", "ignore"))
        text.stylize(_STYLES.get(entity.type, ""), start, end)
    return text

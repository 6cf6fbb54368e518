"""Has the picture of a digest drawn by a process of its own: the memory that drawing takes ends with it."""

import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from bot.chart.picture import Order, Picture
from jobs.program.environment import own_environment, own_module
from jobs.program.group import started
from jobs.program.wording import ended, last_line

_ARGV: Final = own_module("bot.chart")
_SECONDS: Final = 60.0
"""The first picture takes the longest: it looks through the fonts of the machine, and keeps what it has found."""
_MEMORY: Final = 2**30
"""Bytes of address space."""
_OWN_END: Final = 5.0
"""Seconds after its time in which the process ends by itself."""
_FOLDER: Final = "drawing"
_SETTINGS: Final = {
    # A person's own settings, for pictures of theirs, would change this one. They are also looked for in the folder that
    # it is run in, and in the one that keeps what matplotlib remembers: here both are the bot's.
    "MATPLOTLIBRC": "",
    "MPLBACKEND": "agg",
    # Else a library reserves memory for every core of the machine, and uses none of them.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
}
_PNG: Final = b"\x89PNG\r\n\x1a\n"


class DrawingError(Exception):
    """There is no picture; the message is a sentence without its subject."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """Draws. Blocks; called in a thread."""

    data_dir: Path
    seconds: float = _SECONDS
    memory: int = _MEMORY

    def png(self, picture: Picture) -> bytes:
        """Return a picture as PNG, in bounded time and memory. Raises DrawingError."""
        order = Order(picture=picture, seconds=self.seconds, memory=self.memory)
        folder = self.data_dir.absolute() / _FOLDER
        try:
            folder.mkdir(exist_ok=True)
            return self._drawn(msgspec.msgpack.encode(order), folder)
        except subprocess.TimeoutExpired as error:
            raise self._overdue() from error
        except OSError as error:
            raise DrawingError(f"could not be started: {error.strerror}") from error

    def _drawn(self, order: bytes, folder: Path) -> bytes:
        env = own_environment() | _SETTINGS | {"MPLCONFIGDIR": f"{folder}"}
        with started(
            _ARGV, env, stdin=subprocess.PIPE, stderr=subprocess.PIPE, folder=f"{folder}"
        ) as process:
            png, said = process.communicate(order, timeout=self.seconds + _OWN_END)
        if process.returncode == -signal.SIGALRM:
            raise self._overdue()
        if process.returncode or not png.startswith(_PNG):
            raise DrawingError(f"failed: {last_line(said) or ended(process.returncode)}")
        return png

    def _overdue(self) -> DrawingError:
        return DrawingError(f"took more than {self.seconds:g} s")

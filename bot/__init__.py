"""The chat, and the one place where the program is put together."""

__version__ = "0.1.0"

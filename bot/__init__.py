"""The chat, and the one place where the program is put together."""

"""The week's figures, and what the chat is told of them. Pure functions of values."""

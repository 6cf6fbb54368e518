"""A program that somebody has configured: its arguments, its environment, and words for how it ended."""

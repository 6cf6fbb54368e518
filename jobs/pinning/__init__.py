"""What was approved of the watch list, and what an edit of it would change. Pure functions of values."""

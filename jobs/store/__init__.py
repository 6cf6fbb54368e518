"""Everything found and done, in SQLite."""

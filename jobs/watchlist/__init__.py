"""What is watched: loopwarden.toml, checked. An error names the entry, and never a value that stands in it."""

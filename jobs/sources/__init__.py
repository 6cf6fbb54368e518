"""I/O: where tool calls are read."""

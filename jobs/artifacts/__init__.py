"""I/O: where outputs are found, read and judged."""

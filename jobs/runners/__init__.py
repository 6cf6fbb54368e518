"""I/O: runs what a workflow asks for."""

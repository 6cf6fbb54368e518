"""What stops a session: a command, a signal, or a dry run."""

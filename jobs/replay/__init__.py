"""Old logs on their own clock: what would have been alerted and stopped, when, and what that would have saved."""

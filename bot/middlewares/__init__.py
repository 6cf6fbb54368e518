"""What every update passes before a handler sees it."""

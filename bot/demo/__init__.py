"""`loopwarden demo`: two real toy agents, one of them stuck, and the real bot in this terminal."""

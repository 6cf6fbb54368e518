"""One router per area: a handler parses, calls one job, renders."""

"""Decides: did the run deliver? No I/O, no clock, no model."""

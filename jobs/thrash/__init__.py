"""Decides: is this session getting anywhere? Pure functions of values."""

"""Decides: is it worth telling, and how? Pure functions of values."""

"""What holds for every test."""

from hypothesis import settings

# Other programs run on this machine, too: how long an example takes says nothing.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

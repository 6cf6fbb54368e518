"""What a pin has changed, for whoever looks back."""

from dataclasses import dataclass

from jobs.pinning.change import Change
from jobs.pinning.difference import difference
from jobs.pinning.pin import Pin, hash_of, spec_of
from jobs.thrash.policy import OnDetection


@dataclass(frozen=True, slots=True, kw_only=True)
class Audited:
    """A pin beside the one that it has replaced."""

    pin: Pin
    before: Pin | None
    """None: the entry was new."""
    changes: tuple[Change, ...]
    """Empty as well where one of the two is not there, or cannot be read."""

    @property
    def is_altered(self) -> bool:
        """Whether it is not what was approved."""
        return hash_of(self.pin.entry) != self.pin.hash


def audited(pin: Pin, before: Pin | None, default: OnDetection) -> Audited:
    """Compare a pin with the one before of the same entry; `default`: as of `difference`."""
    old, new = spec_of(before), spec_of(pin)
    changes = difference(old, new, default) if old and new else ()
    return Audited(pin=pin, before=before, changes=changes)

"""Which entries of the watch list are not in force as the file has them."""

from collections.abc import Sequence

from bot.views.differing import Differing
from jobs.store.database import Tables


async def find_differing(tables: Tables) -> Sequence[Differing]:
    """Return them: those first that wait for an answer."""
    in_force = {(pin.kind, pin.name) for pin in await tables.pins.in_force()}
    found = [
        Differing(proposal=proposal, is_new=(proposal.kind, proposal.name) not in in_force)
        for proposal in await tables.proposals.newest()
        if proposal.state.still_differs
    ]
    return sorted(found, key=lambda each: not each.is_open)

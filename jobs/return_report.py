"""The first message after having been away: for how long, and what was going on then."""

from dataclasses import dataclass
from typing import Final

from jobs.alert.notice import BackNotice
from jobs.alert.outgoing import told
from jobs.ports import Clock, Store
from jobs.thrash.policy import ThrashPolicy

_SHORTEST: Final = 300
"""Seconds; a restart is not worth a message."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReturnReport:
    """Run once, before anything else: says how long nobody looked."""

    store: Store
    policy: ThrashPolicy
    clock: Clock

    async def __call__(self) -> None:
        """Queue the message if the bot was away for longer than a few beats."""
        now = self.clock.now()
        since = await self.store.reading.presence.last()
        if since is None or now - since <= max(_SHORTEST, 3 * self.policy.every):
            return
        async with self.store.transaction() as tables:
            incidents = tuple((await tables.incidents.unclosed()).values())
            notice = BackNotice(since=since, back_at=now, incidents=incidents)
            await tables.outbox.put(told(notice, urgent=True), now)

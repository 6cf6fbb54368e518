"""Says what would be stopped, and leaves it alone."""

from dataclasses import dataclass

from jobs.ports import Outcome, Stopped, Target
from jobs.program.wording import bounded


@dataclass(frozen=True, slots=True)
class DryRunKiller:
    """A rehearsal: signals nothing, runs nothing."""

    async def stop(self, target: Target, *, harder: bool) -> Stopped:  # noqa: ARG002 - there is no harder rehearsal
        session, agent, reason = bounded(target.session), bounded(target.agent), bounded(target.reason)
        return Stopped(
            outcome=Outcome.DRY_RUN, detail=f"would stop session {session} of agent {agent} ({reason})"
        )

    async def is_alive(self, target: Target) -> bool | None:  # noqa: ARG002 - it looks at nothing
        return None

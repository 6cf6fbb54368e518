"""From what the watch list says to what acts on it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import assert_never

from jobs.approved_copies import ApprovedCopies
from jobs.killers.command import CommandKiller
from jobs.killers.dry_run import DryRunKiller
from jobs.killers.process import ProcessKiller
from jobs.ports import Killer, Stopped, Target
from jobs.watchlist.killers import CommandSpec, DryRunSpec, KillerSpec, ProcessSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalating:
    """A killer whose harder step is another killer."""

    first: Killer
    then: Killer

    async def stop(self, target: Target, *, harder: bool) -> Stopped:
        return await (self.then if harder else self.first).stop(target, harder=False)

    async def is_alive(self, target: Target) -> bool | None:
        """Ask both: one that sees the process alive is believed, then one that sees it gone."""
        answers = [await killer.is_alive(target) for killer in (self.first, self.then)]
        return True if True in answers else False if False in answers else None


def killers_of(specs: Mapping[str, KillerSpec], copies: ApprovedCopies | None = None) -> dict[str, Killer]:
    """Return a killer for every name.

    A `then` that is not among them, or leads back, is left out: entries are approved one by one, and together they may
    say what no watch list could.
    """
    steps = {name: _step(spec, copies) for name, spec in specs.items()}
    return {name: _killer(name, specs, steps, ()) for name in specs}


def _killer(
    name: str, specs: Mapping[str, KillerSpec], steps: Mapping[str, Killer], before: tuple[str, ...]
) -> Killer:
    spec, passed = specs[name], (*before, name)
    first = steps[name]
    if spec.then is None or spec.then not in specs or spec.then in passed:
        return first
    return Escalating(first=first, then=_killer(spec.then, specs, steps, passed))


def _step(spec: KillerSpec, copies: ApprovedCopies | None) -> Killer:
    match spec:
        case CommandSpec():
            return CommandKiller(
                argv=spec.argv, timeout=spec.timeout, folder=spec.folder, files=spec.files, copies=copies
            )
        case ProcessSpec():
            pid_file = None if spec.pid_file is None else Path(spec.pid_file)
            return ProcessKiller(match=re.compile(spec.match), pid_file=pid_file, grace=spec.grace)
        case DryRunSpec():
            return DryRunKiller()
        case _:
            assert_never(spec)

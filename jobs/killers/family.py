"""A process and its descendants: who belongs to it, who is to be left alone, and how all are signalled."""

import signal
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import psutil

from jobs.killers.identity import GRANULARITY, is_living, is_own, own_line

_VANISHED: Final = (psutil.NoSuchProcess, psutil.AccessDenied)
"""Gone, or hidden by the system as another user's: no descendant that could be signalled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Living processes, oldest generation first."""

    members: Sequence[psutil.Process]
    """To be signalled."""
    spared: Mapping[psutil.Process, str]
    """To be left alone, and what they are."""

    def __or__(self, later: "Family") -> "Family":
        members = dict.fromkeys([*self.members, *later.members])
        return Family(members=list(members), spared={**self.spared, **later.spared})


def family_of(known: Iterable[psutil.Process]) -> Family:
    """Return what lives of `known` and of its descendants. Blocks for one look at every process."""
    bots = own_line()
    members, spared = [], {}
    for process in _with_descendants(known):
        with suppress(*_VANISHED):
            if process.pid in bots:
                spared[process] = "the bot or its ancestor"
            elif is_own(process):
                members.append(process)
            else:
                spared[process] = f"of user {process.uids().effective}"
    return Family(members=members, spared=spared)


def send(number: signal.Signals, processes: Iterable[psutil.Process]) -> Sequence[psutil.Process]:
    """Signal each; return those that may not be signalled."""
    denied = []
    for process in processes:
        # psutil asks is_running() first, which compares the start time of whoever has this pid now with the one
        # remembered: if the pid has been given to another process meanwhile, nothing is sent.
        try:
            process.send_signal(number)
        except psutil.NoSuchProcess:
            continue
        except psutil.AccessDenied:
            denied.append(process)
    return denied


def _with_descendants(known: Iterable[psutil.Process]) -> Sequence[psutil.Process]:
    # Asked before the look at all others: whoever dies during it may still be named as a parent there.
    family = {process: process.create_time() for process in known if is_living(process)}
    children = _children()
    generation = dict(family)
    while generation:
        generation = {
            child: born
            for parent, parent_born in generation.items()
            for child, born in children.get(parent.pid, {}).items()
            # A child older than its parent is none: the pid of its true parent was given to this one.
            if child not in family and born >= parent_born - GRANULARITY and is_living(child)
        }
        family.update(generation)
    return list(family)


def _children() -> Mapping[int, Mapping[psutil.Process, float]]:
    """Return every process with the time it was started, by its parent's pid."""
    # Not Process.children() of each member, which looks at every process every time.
    children: defaultdict[int, dict[psutil.Process, float]] = defaultdict(dict)
    for pid in psutil.pids():
        with suppress(*_VANISHED):
            process = psutil.Process(pid)
            children[process.ppid()][process] = process.create_time()
    return children

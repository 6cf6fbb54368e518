"""A call that a log and a hook tell counts once: the log is believed, and a hook tells what came since.

What a hook tells counts if the log has told no calls meanwhile, and until it does: those take the place of all that the
hook has told before. So a log that lags, one that comes late and one that stops growing need no rules of their own. The
two are not joined call by call: not every hook tells an id, some tell other ids than the log, and of a script one may
tell each command.

Not every hook tells a sub-agent's calls from its parent's, and a parent that waits for a sub-agent logs nothing. So a
sub-agent's log that goes on stands for its parent's as well, and the process that a hook names for a parent is its
sub-agents', too.
"""

import msgspec

from jobs.thrash.heard import Heard
from jobs.thrash.locality import LocalityState, kept_of_id


def as_logged(memory: LocalityState) -> LocalityState:
    """Return what the log alone has told. Tokens and money are its own: no hook tells them."""
    if memory.logged is None:
        return memory
    return msgspec.structs.replace(
        memory.logged,
        tokens=memory.tokens,
        cost=memory.cost,
        unpriced=memory.unpriced,
        newest=memory.newest,
        log_ts=memory.log_ts,
    )


def as_hooked(before: LocalityState, after: LocalityState, errors: int) -> LocalityState:
    """Return what is known `after` calls of a hook, so many of them failed, and with it what the log alone has told."""
    logged = before if before.logged is None else before.logged
    return msgspec.structs.replace(after, logged=logged, hook_errors=before.hook_errors + errors)


def since_log(heard: Heard, memory: LocalityState) -> Heard | None:
    """Return those calls of a hook that the log has not told, or None if it has told all of them."""
    if not memory.log_ts:
        return heard
    # A log may tell a call when it begins, a hook tells it when it is over: there the id says that it is the same.
    known = {call.call_id for call in memory.recent if call.call_id}
    calls = [
        call for call in heard.newest if call.ts > memory.log_ts and kept_of_id(call.call_id) not in known
    ]
    if not calls:
        return None
    rest = Heard(calls[0], heard.remembered)
    rest.add(calls)
    return rest

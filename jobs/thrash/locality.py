"""The locality rule: how many of the newest calls lie close to another call of the last minute?

A detector is a pure function (state, calls, policy, now) -> (state, finding or none); this is the first one.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from rapidfuzz.distance import Levenshtein

from jobs.thrash.beside import NOTHING_USED, Newest, Used, with_tokens
from jobs.thrash.call import LoggedCall
from jobs.thrash.finding import Finding
from jobs.thrash.fingerprint import fingerprint
from jobs.thrash.heard import total
from jobs.thrash.policy import ThrashPolicy
from jobs.thrash.price import plus

_KEPT_OF_ID: Final = 40
"""Characters."""


class SeenCall(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What is remembered of a call."""

    number: int
    """Counted from 1 within the session."""
    ts: float
    tool: str
    identity: str
    """Its fingerprint, or the hash its log gave instead of arguments."""
    is_hash: bool
    is_error: bool
    tokens_before: int | None
    """The session's running total until this call, without it; None if none were told before."""
    cost_before: int | None = None
    """The session's money until this call; None if none was known yet."""
    call_id: str = ""
    """The log's own id of it, cut: a copy of a log tells a call once more, and it repeats nothing by that."""


class LocalityState(msgspec.Struct, frozen=True):
    """What the rule remembers of one session between looks."""

    calls: int = 0
    tokens: int | None = None
    recent: tuple[SeenCall, ...] = ()
    cost: int | None = None
    """Money, as in `price`. Logs tell it beside the calls: it is added once the calls of a look are taken in."""
    unpriced: int = 0
    """Tokens that the money leaves out, as no price of theirs is known."""
    newest: Newest | None = None
    """What of these sums the next call may yet be part of."""
    log_ts: float = 0
    """The newest time of which a log has told anything."""
    logged: "LocalityState | None" = None
    """What the log alone has told, where a hook has told what came since."""
    hook_errors: int = 0
    """Of the calls that the hook has told since."""


NOTHING_SEEN: Final = LocalityState()


def detect_locality(
    state: LocalityState,
    calls: Sequence[LoggedCall],
    policy: ThrashPolicy,
    now: float,  # noqa: ARG001 - the seam of all detectors; this one lives on the log's clock
    used: Sequence[Used] = (),
) -> tuple[LocalityState, Finding | None]:
    """Take in new calls of one session, in log order, and score the newest ones.

    `used`: before each call beside all of them, as far as it is not in the state's sums.
    """
    state = _remember(state, calls, used or [NOTHING_USED] * len(calls), policy)
    return state, _judge(state, policy)


def repeating(recent: Sequence[SeenCall], policy: ThrashPolicy) -> list[SeenCall]:
    """Return those of the newest `policy.last` calls that repeat another one."""
    return [call for call in recent[-policy.last :] if _repeats_any(call, recent, policy)]


def pass_over(state: LocalityState, calls: int, tokens: int | None) -> LocalityState:
    """Count calls that so many others follow that they will not be remembered."""
    if not calls:
        return state
    return msgspec.structs.replace(
        state, calls=state.calls + calls, tokens=plus(state.tokens, tokens), recent=()
    )


def _remember(
    state: LocalityState, calls: Sequence[LoggedCall], used: Sequence[Used], policy: ThrashPolicy
) -> LocalityState:
    # Arguments are decoded only for calls that can still matter: a long log is mostly calls that cannot.
    first = max(len(calls) - policy.remembered, 0)
    times = [call.ts for call in calls[first:]]
    scored = [*(call.ts for call in state.recent), *times][-policy.last :]
    oldest = min(scored, default=0) - policy.window
    seen = [call for call in state.recent if call.ts >= oldest]
    tokens = total(state.tokens, calls[:first])
    told = zip(calls[first:], times, used[first:], strict=True)
    for number, (call, ts, beside) in enumerate(told, state.calls + first + 1):
        if ts >= oldest:
            if state.newest and ts == state.newest.ts:
                beside = beside.less(state.newest.used)  # noqa: PLW2901 - as if all had been told in one look
            before = with_tokens(tokens, beside.tokens), plus(state.cost, beside.cost)
            seen.append(_seen(call, ts, number, before, policy))
        tokens = plus(tokens, call.tokens)
    recent = tuple(seen[-policy.remembered :])
    return msgspec.structs.replace(state, calls=state.calls + len(calls), tokens=tokens, recent=recent)


def _seen(
    call: LoggedCall, ts: float, number: int, before: tuple[int | None, int | None], policy: ThrashPolicy
) -> SeenCall:
    given = call.args_hash
    identity = fingerprint(call.args, policy.longest_args) if given is None else given
    own = kept_of_id(call.call_id)
    return SeenCall(number, ts, call.tool, identity, given is not None, call.is_error, *before, own)


def kept_of_id(call_id: str | None) -> str:
    """Return what is remembered of a call's id."""
    return (call_id or "")[-_KEPT_OF_ID:]


def _judge(state: LocalityState, policy: ThrashPolicy) -> Finding | None:
    if state.calls < policy.least_calls:
        return None
    repeats = repeating(state.recent, policy)
    if len(repeats) < policy.threshold:
        return None
    first, newest = _beginning(state.recent, repeats[0], policy), repeats[-1]
    return Finding(
        score=len(repeats),
        tool=newest.tool,
        first_call=first.number,
        first_ts=first.ts,
        newest_repeat=newest.number,
        newest_ts=newest.ts,
        tokens_before=first.tokens_before,
        cost_before=first.cost_before,
    )


def _beginning(recent: Sequence[SeenCall], first: SeenCall, policy: ThrashPolicy) -> SeenCall:
    """Return the first call of the loop that `first` is part of, as far back as is remembered.

    Between two of its calls lie at most as many others as a detection allows among the calls it scores.
    """
    others = 0
    for call in reversed(recent[: recent.index(first)]):
        if _repeats_any(call, recent, policy):
            first, others = call, 0
            continue
        others += 1
        if others > policy.last - policy.threshold:
            break
    return first


def _repeats_any(call: SeenCall, recent: Sequence[SeenCall], policy: ThrashPolicy) -> bool:
    tool, oldest, newest, number = call.tool, call.ts - policy.window, call.ts, call.number
    # What tells most others apart comes first, and is asked in place: a look asks it thousands of times.
    return any(
        _is_near(call, other, policy.distance)
        for other in recent
        if other.tool == tool
        and oldest <= other.ts <= newest
        and other.number != number
        and (not call.call_id or other.call_id != call.call_id)
    )


def _is_near(call: SeenCall, other: SeenCall, distance: int) -> bool:
    if call.is_hash or other.is_hash:
        return call.is_hash and other.is_hash and call.identity == other.identity
    return Levenshtein.distance(call.identity, other.identity, score_cutoff=distance) <= distance

"""The locality rule: how many of the newest calls lie close to another call of the last minute?

A detector is a pure function (state, calls, policy, now) -> (state, finding or none); this is the first one.
"""

from collections.abc import Sequence
from typing import Final

import msgspec
from rapidfuzz.distance import Levenshtein

from jobs.thrash.call import LoggedCall
from jobs.thrash.finding import Finding
from jobs.thrash.fingerprint import fingerprint
from jobs.thrash.heard import total
from jobs.thrash.policy import ThrashPolicy


class SeenCall(msgspec.Struct, frozen=True, array_like=True):
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
    """The session's running total without this call; None if no earlier call had any."""


class LocalityState(msgspec.Struct, frozen=True):
    """What the rule remembers of one session between looks."""

    calls: int = 0
    tokens: int | None = None
    recent: tuple[SeenCall, ...] = ()


NOTHING_SEEN: Final = LocalityState()


def detect_locality(
    state: LocalityState,
    calls: Sequence[LoggedCall],
    policy: ThrashPolicy,
    now: float,  # noqa: ARG001 - the seam of all detectors; this one lives on the log's clock
) -> tuple[LocalityState, Finding | None]:
    """Take in new calls of one session, in log order, and score the newest ones."""
    state = _remember(state, calls, policy)
    return state, _judge(state, policy)


def repeating(recent: Sequence[SeenCall], policy: ThrashPolicy) -> list[SeenCall]:
    """Return those of the newest `policy.last` calls that repeat another one."""
    return [call for call in recent[-policy.last :] if _repeats_any(call, recent, policy)]


def pass_over(state: LocalityState, calls: int, tokens: int | None) -> LocalityState:
    """Count calls that so many others follow that they will not be remembered."""
    if not calls:
        return state
    return LocalityState(
        state.calls + calls, state.tokens if tokens is None else (state.tokens or 0) + tokens
    )


def _remember(state: LocalityState, calls: Sequence[LoggedCall], policy: ThrashPolicy) -> LocalityState:
    # Arguments are decoded only for calls that can still matter: a long log is mostly calls that cannot.
    first = max(len(calls) - policy.remembered, 0)
    times = [call.ts for call in calls[first:]]
    scored = [*(call.ts for call in state.recent), *times][-policy.last :]
    oldest = min(scored, default=0) - policy.window
    seen = [call for call in state.recent if call.ts >= oldest]
    tokens, counted = state.tokens, 0
    for index, ts in enumerate(times, start=first):
        if ts >= oldest:
            tokens, counted = total(tokens, calls[counted:index]), index
            seen.append(_seen(calls[index], state.calls + index + 1, tokens, policy))
    tokens = total(tokens, calls[counted:])
    return LocalityState(state.calls + len(calls), tokens, tuple(seen[-policy.remembered :]))


def _seen(call: LoggedCall, number: int, tokens_before: int | None, policy: ThrashPolicy) -> SeenCall:
    is_hash = call.args_hash is not None
    identity = call.args_hash if call.args_hash is not None else fingerprint(call.args, policy.longest_args)
    return SeenCall(number, call.ts, call.tool, identity, is_hash, call.is_error, tokens_before)


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
    return any(_is_repeat(call, other, policy) for other in recent)


def _is_repeat(call: SeenCall, other: SeenCall, policy: ThrashPolicy) -> bool:
    return (
        other.number != call.number
        and other.tool == call.tool
        and call.ts - policy.window <= other.ts <= call.ts
        and _is_near(call, other, policy.distance)
    )


def _is_near(call: SeenCall, other: SeenCall, distance: int) -> bool:
    if call.is_hash or other.is_hash:
        return call.is_hash and other.is_hash and call.identity == other.identity
    return Levenshtein.distance(call.identity, other.identity, score_cutoff=distance) <= distance

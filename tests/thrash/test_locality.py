"""The locality rule against the sentence that defines it, read as slowly as it is written."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, chain, pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from jobs.thrash.call import ToolCall
from jobs.thrash.finding import Finding
from jobs.thrash.fingerprint import fingerprint
from jobs.thrash.locality import NOTHING_SEEN, LocalityState, detect_locality, pass_over
from jobs.thrash.policy import ThrashPolicy
from tests.fakes import NOON, call

POLICY = ThrashPolicy()
FAR_APART = [
    "read the whole book",
    "listen",
    "walk to the harbour",
    "0123456789",
    "sleep",
    "ask someone else",
]

commands = st.sampled_from(["ls", "lsx", "pwd", "cat README.md", "cat README.txt"])
pauses = st.sampled_from([*[0, 0.5, 3] * 4, 59.5, 60, 60.5, 600])
some_calls = st.builds(
    call,
    ts=pauses,
    command=commands,
    tool=st.sampled_from(["exec", "exec", "exec", "read"]),
    args_hash=st.sampled_from([*[None] * 8, "aaaa", "aaab"]),
    tokens=st.sampled_from([None, 0, 7, 1000]),
)
small_policies = st.builds(
    ThrashPolicy,
    last=st.integers(2, 12),
    threshold=st.integers(2, 6),
    least_calls=st.integers(1, 8),
    distance=st.integers(0, 5),
)


def in_order(calls: Sequence[ToolCall]) -> list[ToolCall]:
    """The same calls, what was drawn as their time now the pause before each."""
    times = accumulate((each.ts for each in calls), initial=NOON)
    next(times)
    return [msgspec.structs.replace(each, ts=ts) for each, ts in zip(calls, times, strict=True)]


batches = st.lists(st.lists(some_calls, max_size=8), min_size=1, max_size=6)


def after(calls: Sequence[ToolCall], policy: ThrashPolicy = POLICY) -> Finding | None:
    return detect_locality(NOTHING_SEEN, calls, policy, NOON)[1]


def score(calls: Sequence[ToolCall], policy: ThrashPolicy = POLICY) -> int:
    """The score, which a finding shows only from the threshold on."""
    found = after(calls, replace(policy, threshold=1, least_calls=1))
    return found.score if found else 0


def repeats_by_definition(calls: Sequence[ToolCall], policy: ThrashPolicy) -> list[int]:
    """Numbers of the calls among the last ten that another call of the last minute lies close to."""

    def is_close(one: ToolCall, other: ToolCall) -> bool:
        if one.args_hash or other.args_hash:
            return one.args_hash == other.args_hash
        left, right = (fingerprint(each.args, policy.longest_args) for each in (one, other))
        return Levenshtein.distance(left, right) <= policy.distance

    return [
        number
        for number, one in list(enumerate(calls, start=1))[-policy.last :]
        if any(
            other is not one and other.tool == one.tool and 0 <= one.ts - other.ts <= 60
            for other in calls
            if is_close(one, other)
        )
    ]


# ── laws ──────────────────────────────────────────────────────────────────────────────────────────


@given(batches, small_policies)
def test_the_rule_is_what_its_definition_says(drawn: list[list[ToolCall]], policy: ThrashPolicy) -> None:
    calls = in_order(list(chain.from_iterable(drawn)))
    expected = repeats_by_definition(calls, policy)
    found = after(calls, policy)
    if len(calls) < policy.least_calls or len(expected) < policy.threshold:
        assert found is None
    else:
        assert found is not None
        assert (found.score, found.newest_repeat) == (len(expected), expected[-1])
        newest = calls[expected[-1] - 1]
        assert (found.newest_ts, found.tool) == (newest.ts, newest.tool)


@given(batches, small_policies)
def test_the_loop_begins_with_a_repeating_call_and_has_no_long_gap(
    drawn: list[list[ToolCall]], policy: ThrashPolicy
) -> None:
    """It reaches back from the newest call over at most as many others as a detection allows in one look."""
    calls = in_order(list(chain.from_iterable(drawn)))
    if found := after(calls, policy):
        repeats = repeats_by_definition(calls, replace(policy, last=len(calls)))
        in_loop = [number for number in repeats if number >= found.first_call]
        assert in_loop[0] == found.first_call <= repeats_by_definition(calls, policy)[0]
        gaps = [later - earlier - 1 for earlier, later in pairwise([*in_loop, len(calls) + 1])]
        assert max(gaps) <= policy.last - policy.threshold
        assert found.first_ts == calls[found.first_call - 1].ts
        counted = [each.tokens for each in calls[: found.first_call - 1] if each.tokens is not None]
        assert found.tokens_before == (sum(counted) if counted else None)


def test_a_loop_is_counted_from_its_beginning_and_not_from_the_calls_that_are_scored() -> None:
    """Forty calls in a minute, found by one look: the first is honest, the other 39 are the loop."""
    found = after([call(NOON + n, tokens=10) for n in range(40)])
    assert found is not None
    assert (found.score, found.first_call, found.first_ts, found.tokens_before) == (10, 2, NOON + 1, 10)


def test_what_came_before_a_stretch_of_work_is_not_part_of_the_loop() -> None:
    """Five calls that repeat nothing lie between."""
    before = [call(NOON + n) for n in range(8)]
    work = [call(NOON + 10 + n, f"a job like no other: {n}" * (n + 1)) for n in range(5)]
    loop = [call(NOON + 20 + n, "make") for n in range(7)]
    found = after([*before, *work, *loop])
    assert found is not None
    assert found.first_call == len(before) + len(work) + 2


@given(batches, small_policies)
def test_it_does_not_matter_how_calls_are_cut_into_batches(
    drawn: list[list[ToolCall]], policy: ThrashPolicy
) -> None:
    calls = in_order(list(chain.from_iterable(drawn)))
    state, finding = detect_locality(NOTHING_SEEN, [], policy, NOON)
    start = 0
    for batch in drawn:
        state, finding = detect_locality(state, calls[start : start + len(batch)], policy, NOON)
        start += len(batch)
    assert (state, finding) == detect_locality(NOTHING_SEEN, calls, policy, NOON)


@given(st.lists(some_calls, max_size=30), small_policies)
def test_the_score_is_never_above_the_number_of_calls_scored(
    calls: list[ToolCall], policy: ThrashPolicy
) -> None:
    """However the log's clock may jump."""
    found = after(calls, policy)
    assert found is None or policy.threshold <= found.score <= min(policy.last, len(calls))


@given(st.lists(some_calls, max_size=30), st.integers(12, 15))
def test_memory_is_bounded_and_survives_the_database(calls: list[ToolCall], remembered: int) -> None:
    state, _ = detect_locality(NOTHING_SEEN, in_order(calls), replace(POLICY, remembered=remembered), NOON)
    assert len(state.recent) <= remembered
    assert msgspec.json.decode(msgspec.json.encode(state), type=LocalityState) == state


def test_a_look_without_calls_judges_what_it_remembers() -> None:
    state, finding = detect_locality(NOTHING_SEEN, [call(NOON + n) for n in range(10)], POLICY, NOON)
    assert finding is not None
    assert detect_locality(state, [], POLICY, NOON + 60) == (state, finding)


# ── examples ──────────────────────────────────────────────────────────────────────────────────────


def test_six_near_calls_among_the_last_ten_are_a_detection() -> None:
    work = [call(NOON + n, command) for n, command in enumerate(FAR_APART[:4])]
    circling = [call(NOON + 10 + n, f"pytest -x {n}", tokens=100) for n in range(7)]
    assert score(work + circling[:6]) == 5
    assert after(work + circling[:6]) is None
    assert after(work + circling) == Finding(
        score=6,
        tool="exec",
        first_call=6,
        first_ts=NOON + 11,
        newest_repeat=11,
        newest_ts=NOON + 16,
        tokens_before=100,
    )


def test_a_session_with_few_calls_is_not_judged() -> None:
    policy = replace(POLICY, threshold=4)
    assert score([call(NOON + n) for n in range(5)]) == 4
    assert after([call(NOON + n) for n in range(5)], policy) is None
    assert after([call(NOON + n) for n in range(6)], policy) is not None


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [
        pytest.param(call(NOON), call(NOON + 60), 1, id="a minute before, the minute included"),
        pytest.param(call(NOON), call(NOON + 60.001), 0, id="longer ago"),
        pytest.param(call(NOON), call(NOON), 2, id="at the same time, so each repeats the other"),
        pytest.param(call(NOON + 1), call(NOON), 1, id="the log is out of order"),
        pytest.param(call(command="0123456789"), call(command="0123456"), 2, id="three edits"),
        pytest.param(call(command="0123456789"), call(command="012345"), 0, id="four edits"),
        pytest.param(call(tool="read"), call(tool="write"), 0, id="another tool"),
        pytest.param(call(args_hash="aa"), call(args_hash="aa"), 2, id="equal hashes"),
        pytest.param(call(args_hash="aa"), call(args_hash="ab"), 0, id="hashes that differ in one letter"),
        pytest.param(call(args=b'"aa"'), call(args_hash='"aa"'), 0, id="a hash and the same as arguments"),
        pytest.param(
            call(args=b'{"q": 1, "ts": 1767225600000}'),
            call(args=b'{"now": "yesterday", "q": 1}'),
            2,
            id="what differs is volatile",
        ),
    ],
)
def test_when_one_call_repeats_another(earlier: ToolCall, later: ToolCall, expected: int) -> None:
    assert score([earlier, later]) == expected


def test_only_what_is_remembered_can_be_repeated() -> None:
    policy = replace(POLICY, last=2, remembered=3)
    others = [call(NOON + n, command) for n, command in enumerate(FAR_APART)]
    assert score([call(NOON), *others[:2], call(NOON + 9)], policy) == 0
    assert score([call(NOON), *others[:1], call(NOON + 9)], policy) == 1


def test_tokens_used_long_before_are_no_cost_of_a_loop_that_begins_at_once() -> None:
    """A burst within one second of the log's clock: nothing earlier is in reach, and still it was paid for."""
    long_ago = call(NOON - 3600, "read the whole book", tokens=1_000_000)
    found = after([long_ago, *(call(NOON, tokens=10) for _ in range(10))])
    assert found is not None
    assert (found.first_call, found.tokens_before) == (2, 1_000_000)


def test_a_call_that_a_copy_of_the_log_tells_once_more_repeats_nothing() -> None:
    """Ten different calls, each told by the log and by its backup under another name: that is no loop."""
    told = [
        msgspec.structs.replace(call(NOON + n, f"step {n} " + "x" * n * 7), call_id=f"c-{n}")
        for n in range(10)
    ]
    state, finding = detect_locality(
        NOTHING_SEEN, [each for each in told for _ in range(2)], ThrashPolicy(), NOON
    )
    assert finding is None
    again = [msgspec.structs.replace(each, call_id=f"d-{n}") for n, each in enumerate(told)]
    assert detect_locality(NOTHING_SEEN, [*told, *again], ThrashPolicy(), NOON)[1]
    assert state.calls == 20


def test_no_log_claims_more_tokens_than_the_database_takes() -> None:
    calls = [msgspec.structs.replace(call(NOON + n), tokens=2**62) for n in range(40)]
    state, _ = detect_locality(NOTHING_SEEN, calls, ThrashPolicy(), NOON)
    assert state.tokens == 2**63 - 1
    assert pass_over(state, 7, 2**62).tokens == 2**63 - 1

"""A call's identity: what is volatile never changes it, what is not always does."""

import json
import random
from datetime import timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.thrash.fingerprint import VOLATILE_KEYS, fingerprint

LONGEST = 4096

zones = st.integers(-12 * 60, 14 * 60).map(lambda minutes: timezone(timedelta(minutes=minutes)))
volatile_values = st.one_of(
    st.datetimes().map(lambda moment: moment.isoformat()),
    st.datetimes(timezones=zones).map(lambda moment: moment.isoformat(sep=" ", timespec="seconds")),
    st.uuids().map(str),
    st.uuids().map(lambda uuid: str(uuid).upper()),
    st.integers(10**12, 2 * 10**12 - 1),
    st.integers(10**12, 2 * 10**12 - 1).map(str),
    st.floats(1e12, 1.9e12),
)
leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False))
values = st.recursive(
    leaves | st.text() | volatile_values,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def written(value: object) -> bytes:
    return json.dumps(value).encode()


@given(st.binary(), st.integers(1, 50))
def test_any_bytes_have_one(args: bytes, longest: int) -> None:
    """A log can hold anything where arguments should be; the identity stays bounded and repeatable."""
    found = fingerprint(args, longest)
    assert found == fingerprint(args, longest)
    assert len(found) <= longest + 65


@given(values)
def test_any_json_has_one_that_does_not_depend_on_how_it_was_written(value: object) -> None:
    spaced = json.dumps(value, indent=2, ensure_ascii=False).encode(errors="surrogatepass")
    assert fingerprint(written(value), LONGEST) == fingerprint(spaced, LONGEST)


@given(values, st.randoms(use_true_random=False), st.data())
def test_volatile_fields_never_change_it(value: object, chance: random.Random, data: st.DataObject) -> None:
    def volatile() -> object:
        return data.draw(volatile_values)

    def sprinkled(inner: object) -> object:
        match inner:
            case dict():
                kept = {key: sprinkled(each) for key, each in inner.items()}
                key = chance.choice(sorted(VOLATILE_KEYS))
                return {"a new key": volatile(), **kept, key: data.draw(values)}
            case list():
                kept_items = [sprinkled(each) for each in inner]
                kept_items.insert(chance.randint(0, len(kept_items)), volatile())
                return kept_items
            case _:
                return inner

    assert fingerprint(written(sprinkled(value)), LONGEST) == fingerprint(written(value), LONGEST)


@given(volatile_values, volatile_values)
def test_arguments_that_are_nothing_but_volatile_are_all_the_same(one: object, other: object) -> None:
    assert fingerprint(written(one), LONGEST) == fingerprint(written(other), LONGEST)


@given(st.dictionaries(st.sampled_from("abcdef"), leaves, min_size=2))
def test_the_order_of_keys_does_not_matter(value: dict[str, object]) -> None:
    turned = dict(reversed(value.items()))
    assert fingerprint(written(value), LONGEST) == fingerprint(written(turned), LONGEST)


@pytest.mark.parametrize(
    "value",
    [
        "2026-01-01T10:00",
        "2026-01-01T10:00:00",
        "2026-01-01 10:00:00.123456 Z",
        "2026-01-01T10:00:00+0200",
        "2026-01-01t10:00:00z",
        "123E4567-e89b-12d3-a456-426614174000",
        1767225600000,
        1767225600000.5,
        "1767225600000",
    ],
    ids=repr,
)
def test_shapes_that_are_volatile(value: object) -> None:
    assert fingerprint(written({"query": value}), LONGEST) == "{}"


@pytest.mark.parametrize(
    "value",
    [
        "2026-01-01",
        "10:00:00",
        "report of 2026-01-01T10:00:00Z",
        "2026-01-01T10:00:00Z" + " " * 30,
        1767225600,
        999999999999,
        2000000000000,
        -1767225600000,
        "9767225600000",
        "123e4567e89b12d3a456426614174000",
        True,
        None,
    ],
    ids=repr,
)
def test_shapes_that_are_not(value: object) -> None:
    """A date or a plain number is often the very thing that an agent varies as it gets on."""
    assert fingerprint(written({"query": value}), LONGEST) == json.dumps(
        {"query": value}, separators=(",", ":")
    )


def test_a_key_is_volatile_only_as_a_whole() -> None:
    assert fingerprint(b'{"ts": 1, "tsx": 1, "TS": 1}', LONGEST) == '{"TS":1,"tsx":1}'


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(b"[" * 100_000, id="nested without end"),
        pytest.param(b"[" * 5000 + b"]" * 5000, id="nested too deeply"),
        pytest.param(b'{"a": "\xff"}', id="not UTF-8"),
        pytest.param(b'{"a": "\\ud800"}', id="half a character"),
        pytest.param(b'{"a": 1e999}', id="number out of range"),
        pytest.param(b'{"a": ', id="torn"),
        pytest.param(b"", id="nothing"),
        pytest.param(b'{"ts": 1, "a": "' + b"x" * (1 << 18) + b'"}', id="too long"),
        pytest.param(b'{"ts": 1, "a": "' + b"x" * 2**18 + b'"}', id="too large"),
    ],
)
def test_what_cannot_be_decoded_is_taken_as_it_is_written(args: bytes) -> None:
    assert fingerprint(args, 10**6) == args.decode(errors="replace")


def test_long_arguments_are_the_same_only_if_they_are_equal() -> None:
    """Their beginnings alone would make every edit of one large file a repetition."""
    long = fingerprint(written("x" * 100 + "a"), 50)
    assert long == fingerprint(written("x" * 100 + "a"), 50)
    other = fingerprint(written("x" * 100 + "b"), 50)
    assert long[:51] == other[:51]
    assert sum(one != two for one, two in zip(long, other, strict=True)) > 3

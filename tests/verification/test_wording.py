"""Reasons are for people: one line, printable, short, and with no value in full length."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.verification.wording import duration, instant, listed, number, one_line, quantity, shown


@given(st.text(), st.integers(1, 300))
def test_any_text_becomes_one_printable_line_of_at_most_so_many_characters(text: str, longest: int) -> None:
    line = one_line(text, longest)
    assert line.isprintable()
    assert len(line) <= longest
    if text.isprintable() and len(text) <= longest:
        assert line == text


def test_what_a_screen_does_not_show_is_written_out() -> None:
    assert one_line("a\nb\x1b[31m\u202e") == r"a b\x1b[31m\u202e"
    assert one_line("abc", 2) == "a…"


@given(st.text() | st.integers() | st.floats() | st.booleans() | st.none() | st.lists(st.text()))
def test_no_value_is_longer_than_sixty_characters(value: object) -> None:
    assert len(shown(value)) <= 60
    assert shown(value).isprintable()


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (None, "null"),
        (True, "true"),
        ("x" * 1000, f'"{"x" * 39}…"'),
        (12, "12"),
        (1234567, "1,234,567"),
        (2.0, "2"),
        (0.1, "0.1"),
        (10**20, "1.000e+20"),
        (10**4000, "a huge number"),
        ([1, 2], "an array of 2"),
        ({"password": "x"}, "a table of 1"),
        (b"x", "b'x'"),
    ],
)
def test_values_are_shown_cut_and_what_holds_others_by_its_size(value: object, words: str) -> None:
    assert shown(value) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0, "0 s"),
        (0.25, "0.25 s"),
        (59.96, "60 s"),
        (60, "1 min"),
        (61.9, "1 min 1 s"),
        (3600, "1 h"),
        (5400, "1 h 30 min"),
        (86_400, "1 d"),
        (90_000, "1 d 1 h"),
        (1e9, "11,574 d 1 h"),
    ],
)
def test_a_length_of_time_has_its_two_largest_units(seconds: float, words: str) -> None:
    assert duration(seconds) == words


def test_an_instant_is_a_date_if_its_year_has_four_digits() -> None:
    assert instant(1_767_225_600.9) == "2026-01-01 00:00:00 UTC"
    assert instant(1e15) == "epoch 1.000e+15"
    assert instant(-1) == "epoch -1"


def test_lists_are_short() -> None:
    assert listed(["ok"]) == "ok"
    assert listed(["ok", "partial", "failed"]) == "ok, partial or failed"
    assert listed("abcdefg", "and") == "a, b, c, d and 3 more"
    assert quantity(1, "byte") == "1 byte"
    assert quantity(2113, "byte") == "2,113 bytes"
    assert number(-1.5) == "-1.5"

"""Paths: how they are written, where they lead, and what is left when what lies there is taken away."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.verification.path import (
    ABSENT,
    Path,
    PathError,
    column,
    has_each,
    parse_path,
    places,
    values,
    without,
)

ROOT: object = {
    "status": "ok",
    "result": {"total": 12, "by.day": [1, 2]},
    "items": [{"id": "a"}, {"id": None}, {}, 5],
    "none": [],
}


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("status", ("status",)),
        ("result.total", ("result", "total")),
        ("items[].id", ("items", None, "id")),
        ("items[2].id", ("items", 2, "id")),
        ("[].x", (None, "x")),
        ("[0][1]", (0, 1)),
        ('"a.b".c', ("a.b", "c")),
        ('a."b[0]"', ("a", "b[0]")),
        (r'"say \"x\" \\ y"', (r'say "x" \ y',)),
        ('" "', (" ",)),
        ("Total (EUR)", ("Total (EUR)",)),
        ("größe", ("größe",)),
    ],
)
def test_dots_lead_to_keys_and_brackets_to_elements(text: str, path: Path) -> None:
    assert parse_path(text) == path


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("", 1),
        (".a", 1),
        ("a.", 2),
        ("a..b", 2),
        ("a[", 2),
        ("a[x]", 2),
        ("a[-1]", 2),
        ("a[1", 2),
        ("a]", 2),
        ("a[]b", 4),
        ("a[][", 4),
        ('"a', 1),
        ('""', 1),
        ("  ", 1),
        ("a. ", 2),
        ('a"b"', 2),
        ("a[1234567890]", 2),
    ],
)
def test_a_text_that_is_no_path_is_refused_with_the_place(text: str, place: int) -> None:
    with pytest.raises(PathError, match=f"at character {place}$"):
        parse_path(text)


@given(st.text())
def test_any_text_is_a_path_or_is_refused(text: str) -> None:
    with suppress(PathError):
        assert parse_path(text)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("status", [("status", "ok")]),
        ("result.total", [("result.total", 12)]),
        ("result.total.x", [("result.total.x", ABSENT)]),
        ('result."by.day"[1]', [('result."by.day"[1]', 2)]),
        ('result."by.day"[2]', [('result."by.day"[2]', ABSENT)]),
        ("nowhere.at.all", [("nowhere.at.all", ABSENT)]),
        (
            "items[].id",
            [("items[0].id", "a"), ("items[1].id", None), ("items[2].id", ABSENT), ("items[3].id", ABSENT)],
        ),
        ("items[1].id", [("items[1].id", None)]),
        ("items.id", [("items.id", ABSENT)]),
        ("none[].id", []),
        ("status[]", [("status[]", ABSENT)]),
        ("status[].id", [("status[]", ABSENT)]),
        ("status[0]", [("status[0]", ABSENT)]),
        ("[].id", [("[]", ABSENT)]),
    ],
)
def test_what_lies_at_a_path_is_found_and_named(text: str, found: list[tuple[str, object]]) -> None:
    path = parse_path(text)
    assert list(places(ROOT, path)) == found
    assert values(ROOT, path) == [value for _, value in found]


keys = st.sampled_from("abc")
roots = st.recursive(
    st.none() | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=12,
)
paths = st.lists(keys | st.integers(0, 3) | st.none(), min_size=1, max_size=4).map(tuple)


@given(roots, paths)
def test_the_quick_look_and_the_one_that_names_find_the_same(root: object, path: Path) -> None:
    assert values(root, path) == [value for _, value in places(root, path)]


@given(roots, paths.filter(lambda path: not any(isinstance(step, int) for step in path)))
def test_without_leaves_nothing_at_the_path_and_all_else_as_it_was(root: object, path: Path) -> None:
    before = repr(root)
    left = without(root, path)
    assert all(value is ABSENT for value in values(left, path))
    assert repr(root) == before
    if all(value is ABSENT for value in values(root, path)):
        assert left == root


def test_without_takes_one_element_or_what_is_within_it() -> None:
    root = {"a": [1, {"b": 2, "c": 3}, 4]}
    assert without(root, ("a", 1)) == {"a": [1, 4]}
    assert without(root, ("a", 1, "b")) == {"a": [1, {"c": 3}, 4]}
    assert without(root, ("a", 9)) == root


def test_a_path_says_whether_it_leads_to_any_number_of_values() -> None:
    assert has_each(parse_path("items[].id"))
    assert not has_each(parse_path("items[0].id"))


def test_rows_have_nothing_below_their_columns_so_dots_belong_to_the_name() -> None:
    assert column(parse_path("result.total")) == "result.total"

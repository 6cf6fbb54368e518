"""A value from a log stays inside the one argument it was meant for."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.killers.argv import fill_in
from jobs.ports import Target
from jobs.program.argv import UnsafeArgumentError
from jobs.watchlist.killers import PLACEHOLDERS
from tests.killers.conftest import TARGET

PIECES = st.one_of(
    st.sampled_from([f"{{{name}}}" for name in PLACEHOLDERS]),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0{}"), min_size=1, max_size=5),
)
TEMPLATES = st.lists(st.lists(PIECES, min_size=1, max_size=4).map("".join), min_size=1, max_size=5)


def test_placeholders_are_replaced_inside_their_argument() -> None:
    argv = fill_in(["stop", "--session={session}", "{agent}: {reason} ({score})", "{{plain}}"], TARGET)
    assert argv == ["stop", "--session=s-1", "coder: thrash_loop:8 (8)", "{plain}"]


def test_every_placeholder_the_watch_list_allows_has_a_value() -> None:
    assert fill_in([f"{{{name}}}" for name in PLACEHOLDERS], TARGET) == ["s-1", "coder", "thrash_loop:8", "8"]


@given(templates=TEMPLATES, session=st.text(), agent=st.text(), reason=st.text())
def test_a_value_never_becomes_more_than_one_argument(
    templates: list[str], session: str, agent: str, reason: str
) -> None:
    """One argument per template, each the template's own text round the values as they are; or none at all."""
    target = msgspec.structs.replace(TARGET, session=session, agent=agent, reason=reason)
    values = {"{session}": session, "{agent}": agent, "{reason}": reason, "{score}": "8"}
    try:
        argv = fill_in(templates, target)
    except UnsafeArgumentError:
        return
    assert argv == [re.sub(r"\{\w+\}", lambda found: values[found[0]], template) for template in templates]
    assert not any(
        argument.startswith("-") and not template.startswith("-")
        for template, argument in zip(templates, argv, strict=True)
    )


@given(st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1))
def test_braces_in_a_value_mean_nothing(session: str) -> None:
    target = msgspec.structs.replace(TARGET, session=session + "{agent}{{")
    assert fill_in(["id={session}"], target) == [f"id={session}{{agent}}{{{{"]


@pytest.mark.parametrize(
    ("template", "fields", "message"),
    [
        ("{session}", {"session": "--all"}, '"--all" would be read as an option'),
        ("{score}", {"score": -1}, '"-1" would be read as an option'),
        ("{session}", {"session": "-" * 300}, f'"{"-" * 199}…" would be read as an option'),
        ("id={session}", {"session": "a\0b"}, '"id=a\0b" holds characters that no argument can'),
        ("id={session}", {"session": "a\ud800b"}, '"id=a?b" holds characters that no argument can'),
        ("id={session}", {"session": ""}, "the session is empty"),
    ],
)
def test_what_is_more_than_data_is_refused(template: str, fields: dict[str, object], message: str) -> None:
    target: Target = msgspec.structs.replace(TARGET, **fields)
    with pytest.raises(UnsafeArgumentError) as caught:
        fill_in([template], target)
    assert str(caught.value) == message


def test_a_dash_that_stands_in_the_template_is_the_owners() -> None:
    assert fill_in(["--{session}"], TARGET) == ["--s-1"]

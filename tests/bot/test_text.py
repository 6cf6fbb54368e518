"""Foreign text is data: cleaned, masked and cut, whatever it holds."""

import pytest
from aiogram.utils.formatting import Bold, Code, Pre, Text
from hypothesis import given
from hypothesis import strategies as st

from bot.redaction import MASK
from bot.views.cleaning import clean, cut, one_line, units
from bot.views.text import MESSAGE_LIMIT, fit, name
from tests.bot.hostile import is_harmless, texts

TOKEN = "424242424:" + "A" * 35


# ── clean ─────────────────────────────────────────────────────────────────────────────────────────


@given(texts(), st.integers(1, 200))
def test_a_clean_text_shows_all_that_is_in_it_and_keeps_to_its_limit(text: str, limit: int) -> None:
    cleaned = clean(text, limit)
    assert is_harmless(cleaned)
    assert units(cleaned) <= limit
    cleaned.encode()


@given(st.text(st.characters(codec="ascii", categories=["L", "N", "P"]), max_size=50))
def test_a_plain_text_stays_as_it_is(text: str) -> None:
    assert clean(text, 50) == text or MASK in clean(text, 50)


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;title\x07text", "text"),
        ("\x1b]8;;https://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("user\u202etxt.exe", "usertxt.exe"),
        ("ad\u200bmin", "admin"),
        ("hid\U000e0068\U000e0069den", "hidden"),
        ("heart\ufe0f", "heart"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        ("carriage\rreturn\x00", "carriagereturn"),
        ("  around  ", "around"),
        ("e\u0301", "é"),
        ("\u3164\u2800\u115f", ""),
    ],
)
def test_what_nobody_sees_is_taken_out(text: str, cleaned: str) -> None:
    assert clean(text, 100) == cleaned


def test_a_secret_is_masked_also_when_it_is_broken_by_what_nobody_sees() -> None:
    broken = "\u200b".join(TOKEN)
    assert clean(f"my {broken} is", 200) == f"my {MASK} is"


def test_a_secret_at_the_cut_does_not_show_its_beginning() -> None:
    assert "AAA" not in clean("x" * 50 + " " + TOKEN, 70)


def test_a_text_of_megabytes_costs_little() -> None:
    assert clean("x" * 10_000_000, 10) == "x" * 9 + "…"


# ── cut ───────────────────────────────────────────────────────────────────────────────────────────


@given(st.text(max_size=60), st.integers(1, 60))
def test_a_cut_text_is_a_beginning_and_never_half_a_character(text: str, limit: int) -> None:
    short = cut(text, limit)
    assert units(short) <= limit
    assert short == text or text.startswith(short.removesuffix("…"))
    short.encode()


def test_the_limit_counts_as_telegram_counts() -> None:
    assert cut("🙂🙂🙂", 6) == "🙂🙂🙂"
    assert cut("🙂🙂🙂", 5) == "🙂🙂…"
    assert cut("🙂🙂🙂", 4) == "🙂…"


# ── names ─────────────────────────────────────────────────────────────────────────────────────────


@given(texts(), st.integers(1, 64))
def test_a_name_is_one_line_that_is_not_empty(text: str, limit: int) -> None:
    shown = one_line(text, limit)
    assert shown
    assert shown.splitlines() == [shown]
    assert "\t" not in shown
    assert is_harmless(shown)
    assert units(shown) <= limit


def test_letters_that_only_look_different_are_made_alike() -> None:
    assert one_line("\uff37\uff4f\uff52\uff4b\uff45\uff52\uff0d\u2462") == "Worker-3"


def test_a_name_is_code_so_that_nothing_in_it_can_be_tapped() -> None:
    text, entities = name("@admin t.me/evil /kill").render()
    assert [(entity.type, entity.offset, entity.length) for entity in entities] == [("code", 0, len(text))]


# ── fit ───────────────────────────────────────────────────────────────────────────────────────────


def formatted() -> st.SearchStrategy[Text]:
    """Texts with entities in them and in each other, longer and shorter than what fits."""
    plain = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
    long = plain.map(lambda text: text * 300)
    leaf = st.one_of(plain, long, plain.map(Code), long.map(Pre), plain.map(Bold))
    return st.lists(st.one_of(leaf, st.lists(leaf, max_size=3).map(lambda parts: Bold(*parts)))).map(
        lambda parts: Text(*parts)
    )


@given(formatted(), st.integers(2, 300) | st.just(MESSAGE_LIMIT))
def test_what_fits_has_its_entities_inside_and_around_whole_characters(content: Text, limit: int) -> None:
    text, entities = fit(content, limit)
    assert units(text) <= limit
    encoded = text.encode("utf-16-le")
    for entity in entities:
        end = entity.offset + entity.length
        assert 0 <= entity.offset < end <= units(text)
        encoded[2 * entity.offset : 2 * end].decode("utf-16-le")


def test_what_fits_stays_as_it_is() -> None:
    content = Text("Agent ", Code("🙂"), " is ", Bold("here"))
    assert tuple(fit(content)) == content.render()


def test_an_entity_that_is_cut_ends_with_the_text() -> None:
    text, [entity] = fit(Text("12345", Code("67890")), 8)
    assert text == "1234567…"
    assert (entity.offset, entity.length) == (5, 3)


def test_an_empty_entity_is_left_out() -> None:
    """Telegram's server would refuse the message."""
    assert fit(Text("Detail: ", Code(""))).entities == []

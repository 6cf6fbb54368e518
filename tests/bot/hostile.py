"""Text as an agent would write it that wants to be taken for something else."""

import unicodedata

from hypothesis import strategies as st

INVISIBLE = (
    "\u202e\u202a\u2066\u2069"  # bidirectional
    "\u200b\u200c\u200d\u200e\u2060\ufeff\u00ad\u180e\u115f\u3164\u2800\u034f"  # zero width, blank letters
    "\U000e0001\U000e0041\U000e007f\ufe0f\U000e0100"  # tags, variation selectors
    "\x00\x07\x08\x1b\x7f\x85\x9b\u2028\u2029\ue000\U0010ffff"  # control, private use, not assigned
)
_SPECIMENS = (
    *("\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x1b]8;;https://evil\x1b\\link", "\x1bc", "\x1b["),
    *("https://evil.example/?q=1", "t.me/evil", "@admin", "/kill 1", "#tag", "tg://user?id=1", "a@b.example"),
    *("<b>bold</b>", "*bold*", "[text](https://evil)", "`code`", "\n\n🛑 Stopped: main", "🙂", "👩\u200d🚀"),
    *("ﷺ", "①", "\uff21", "e\u0301", "\ud800", "\udfff", "مرحبا", "\t", " ", ""),
)


def texts(longest: int = 100) -> st.SearchStrategy[str]:
    """Any text at all, and such as is made of the worst there is."""
    worst = st.lists(st.sampled_from((*_SPECIMENS, *INVISIBLE)) | st.text(max_size=5), max_size=longest // 8)
    anything = st.text(st.characters(), max_size=longest)
    return st.one_of(
        anything, worst.map("".join), st.sampled_from(_SPECIMENS).map(lambda text: text * longest)
    )


def is_harmless(text: str) -> bool:
    """Whether a text shows all that is in it."""
    shown = text.replace("\n", "").replace("\t", "")
    return not any(
        char in INVISIBLE or unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co"} for char in shown
    )

"""How findings look, on a terminal and in a file."""

import io

import pytest

from bot.checking.finding import error, fine, foreign, warning
from bot.checking.report import Report
from bot.redaction import MASK


class Terminal(io.StringIO):
    """A terminal that can show any character, or ASCII alone."""

    def __init__(self, encoding: str) -> None:
        super().__init__()
        self._encoding = encoding

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self._encoding

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def terminal_without_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR", raising=False)


LONG = "x" * 300


def shown(out: io.StringIO) -> list[str]:
    report = Report(out)
    report.hide("hunter2")
    report.hide("")
    report.show(fine("one", f"grüß {MASK} hunter2"))
    report.show(warning("two", LONG, "do"))
    report.show(error("three", "[red]no[/red]", "mend…"))
    assert report.close() == 1
    return out.getvalue().replace("\x1b", "").splitlines()


def test_a_file_gets_words_in_ascii() -> None:
    """One line each, however long."""
    assert shown(io.StringIO()) == [
        r"ok      one: gr\xfc\xdf *** ***",
        f"warning two: {LONG} -> do",
        "error   three: [red]no[/red] -> mend...",
        "`loopwarden run` would not work as it should: 1 error, 1 warning",
    ]


def test_a_terminal_that_shows_ascii_alone_gets_the_same() -> None:
    assert [line.replace("[1m", "").replace("[0m", "") for line in shown(Terminal("ascii"))] == shown(
        io.StringIO()
    )


def test_a_terminal_gets_marks() -> None:
    lines = [line.replace("[1m", "").replace("[0m", "") for line in shown(Terminal("utf-8"))]
    assert lines == [
        f"✓ one: grüß {MASK} {MASK}",
        f"! two: {LONG} → do",
        "✗ three: [red]no[/red] → mend…",
        "`loopwarden run` would not work as it should: 1 error, 1 warning",
    ]


def test_warnings_alone_are_exit_code_0() -> None:
    out = io.StringIO()
    report = Report(out)
    report.show(warning("a", "b", "c"))
    assert report.close() == 0
    assert out.getvalue().splitlines()[-1] == "`loopwarden run` would work: 0 errors, 1 warning"


def test_foreign_text_is_one_clean_line() -> None:
    assert foreign("a\n\tb\x1b[31mc\u202e password=hunter2") == f"a bc password={MASK}"
    assert foreign("http://bot:hunter2@localhost:8081") == f"http://bot:{MASK}@localhost:8081"
    assert len(foreign("x" * 10_000)) == 160

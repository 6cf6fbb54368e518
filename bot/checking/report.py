"""Prints findings, one a line, as they come."""

from collections import Counter
from typing import Final, TextIO

from rich.console import Console
from rich.text import Text

from bot.checking.finding import Finding, Level
from bot.redaction import MASK
from bot.views.cleaning import in_encoding
from bot.views.measure import plural

_MARKS: Final = {Level.OK: "✓", Level.WARNING: "!", Level.ERROR: "✗"}
_STYLES: Final = {Level.OK: "green", Level.WARNING: "yellow", Level.ERROR: "bold red"}
_PLAIN_MARKS: Final = {level: f"{level:7}" for level in Level}


class Report:
    """Marks and colours on a terminal that can show them, else words in plain ASCII."""

    def __init__(self, out: TextIO) -> None:
        self._console = Console(file=out, highlight=False, soft_wrap=True)
        self._is_plain = not self._console.is_terminal or self._console.options.ascii_only
        self._secrets: list[str] = []
        self._seen: Counter[Level] = Counter()

    def hide(self, secret: str) -> None:
        """Show a mask wherever this text would be shown."""
        self._secrets += [secret] if secret else []

    def show(self, finding: Finding) -> None:
        """Print one line."""
        self._seen[finding.level] += 1
        mark = (_PLAIN_MARKS if self._is_plain else _MARKS)[finding.level]
        mend = f" → {finding.mend}" if finding.mend else ""
        line = Text()
        line.append(f"{mark} ", style=_STYLES[finding.level])
        line.append(self._shown(finding.subject), style="bold")
        line.append(self._shown(f": {finding.says}{mend}"))
        self._console.print(line)

    def close(self) -> int:
        """Print what it comes to; return the exit code."""
        errors, warnings = self._seen[Level.ERROR], self._seen[Level.WARNING]
        counted = f"{plural(errors, 'error')}, {plural(warnings, 'warning')}"
        verdict = "`loopwarden run` would not work as it should" if errors else "`loopwarden run` would work"
        self._console.print(Text(f"{verdict}: {counted}"))
        return 1 if errors else 0

    def _shown(self, text: str) -> str:
        for secret in self._secrets:
            text = text.replace(secret, MASK)
        return in_encoding(text, "ascii" if self._is_plain else "utf-8")

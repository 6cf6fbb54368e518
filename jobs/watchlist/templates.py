"""The argv of a program: templates whose placeholders are filled in later."""

import string
from collections.abc import Collection

from jobs.watchlist.entries import absolute, check_text
from jobs.watchlist.error import WatchlistError, unknown


def parse_argv(
    argv: tuple[str, ...], place: str, folder: str, placeholders: Collection[str]
) -> tuple[str, ...]:
    """Return the templates with an absolute program, unless that is to be found on the PATH."""
    if not argv:
        raise WatchlistError(f"{place}: must not be empty")
    for index, template in enumerate(argv):
        _check(template, f"{place}[{index}]", placeholders)
    program, *rest = argv
    return (_program(program, f"{place}[0]", folder), *rest)


def _program(template: str, place: str, folder: str) -> str:
    if any(field is not None for _, field, _, _ in string.Formatter().parse(template)):
        raise WatchlistError(f"{place}: must not hold a placeholder; a program is not for a log to choose")
    if "/" in template:
        return absolute(template, folder, place, _escape_braces)
    check_text(template, place)
    return template


def _escape_braces(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def _check(template: str, place: str, placeholders: Collection[str]) -> None:
    if "\0" in template:
        raise WatchlistError(f"{place}: must not hold a NUL character")
    try:
        parts = list(string.Formatter().parse(template))
    except ValueError:
        raise WatchlistError(f"{place}: a single brace; one that is meant is written {{{{ or }}}}") from None
    for _, field, options, conversion in parts:
        if field is None:
            continue
        if field not in placeholders:
            raise WatchlistError(f"{place}: {unknown('unknown placeholder', field, placeholders, '{%s}')}")
        if options or conversion:
            raise WatchlistError(f"{place}: a placeholder takes neither format nor conversion")

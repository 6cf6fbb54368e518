"""An argv, filled in: a foreign value stays inside the one argument it was meant for."""

import os
import string
from collections.abc import Mapping, Sequence

from jobs.program.wording import bounded


class UnsafeArgumentError(Exception):
    """A value would be more than the data it should be; the message is a sentence."""


def fill_in(templates: Sequence[str], values: Mapping[str, str]) -> list[str]:
    """Return one argument per template, its `{placeholders}` replaced by `values`.

    Raises:
        UnsafeArgumentError: a value is empty, or makes an option of its argument, or cannot be passed at all.
    """
    return [_argument(template, values) for template in templates]


def _argument(template: str, values: Mapping[str, str]) -> str:
    argument = ""
    # Not str.format: one pass over the template alone, so that braces inside a value mean nothing.
    for literal, field, _, _ in string.Formatter().parse(template):
        argument += literal
        if field is not None:
            argument += _value(field, values[field])
    if argument.startswith("-") and not template.startswith("-"):
        raise UnsafeArgumentError(f'"{bounded(argument)}" would be read as an option')
    if "\0" in argument or not _is_encodable(argument):
        raise UnsafeArgumentError(f'"{bounded(argument)}" holds characters that no argument can')
    return argument


def _value(field: str, value: str) -> str:
    # An empty name may mean "all of them" to the program that gets it.
    if not value:
        raise UnsafeArgumentError(f"the {field} is empty")
    return value


def _is_encodable(argument: str) -> bool:
    try:
        os.fsencode(argument)
    except UnicodeEncodeError:
        return False
    return True

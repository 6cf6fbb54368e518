"""JSON Schema. A reference that leads out of the schema leads nowhere: nothing is ever fetched."""

import re
from typing import Any, Final, cast

from jsonschema.exceptions import SchemaError, UndefinedTypeCheck, UnknownType
from jsonschema.protocols import Validator
from jsonschema.validators import Draft202012Validator, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from jobs.verification.parsing import Document
from jobs.verification.wording import UnmetError, one_line, shown

_LONGEST: Final = 150
"""Characters of a sentence or a place that is not ours."""


def conforms(document: Document, schema: object | None) -> str:
    """Say that the output, or every record, conforms to the schema. Raises UnmetError."""
    if not isinstance(schema, dict | bool):
        raise UnmetError("the schema is none: it cannot be read, or is neither a table nor a truth value")
    try:
        return _checked(document, _validator(schema))
    except UnmetError:
        raise
    except SchemaError as error:
        place = one_line(error.json_path, _LONGEST)
        raise UnmetError(
            f"the schema itself is wrong at {place}: {one_line(error.message, _LONGEST)}"
        ) from None
    except Unresolvable as error:
        raise UnmetError(f"the schema refers to {shown(error.ref)}, which is not in it") from None
    except (re.error, UnknownType, UndefinedTypeCheck, ArithmeticError, TypeError, ValueError) as error:
        raise UnmetError(f"the schema cannot be applied: {one_line(str(error), _LONGEST)}") from None


def _validator(schema: dict[str, Any] | bool) -> Validator:
    kind = validator_for(schema, default=Draft202012Validator)
    kind.check_schema(cast(Any, schema))
    return kind(schema, registry=Registry())


def _checked(document: Document, validator: Validator) -> str:
    for where, value in document.places(()):
        error = next(validator.iter_errors(cast(Any, value)), None)
        if error:
            # Not the library's own sentence: it holds the whole value.
            place = one_line(f"{where}{error.json_path.removeprefix('$').removeprefix('.')}", _LONGEST)
            raise UnmetError(
                f"{place or 'the whole'} is {shown(error.instance)},"
                f" which the schema's {error.validator} {_limit(error.validator_value)} forbids"
            )
    return "the schema is met"


def _limit(value: object) -> str:
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return one_line(" ".join(value), 60)
    return shown(value)

"""Reads the JSON Schema that a workflow names."""

import json
from typing import Any, cast

from jobs.artifacts.snapshot import take_snapshot
from jobs.contents import LARGEST_SCHEMA
from jobs.verification.spec import WorkflowSpec


class SchemaError(Exception):
    """It cannot be used; the message is a sentence."""


def schema_of(spec: WorkflowSpec) -> object | None:
    """Return the schema of a workflow, decoded; None if it has none.

    Raises:
        SchemaError: as of `read_schema`.
    """
    if spec.schema is None:
        return None
    return read_schema(spec.schema) if spec.schema_text is None else _decoded(spec.schema_text, spec.schema)


def read_schema(path: str) -> object:
    """Return the schema at `path`, decoded.

    Raises:
        SchemaError: there is none, or it is no JSON.
    """
    snapshot = take_snapshot(path, LARGEST_SCHEMA)
    if snapshot.problem is not None:
        raise SchemaError(f"the schema cannot be used: {snapshot.problem}")
    return _decoded(snapshot.data, path)


def _decoded(text: str | bytes, path: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise SchemaError(f"the schema cannot be used: {path} is no JSON") from None


def flaw_of_schema(path: str) -> str | None:
    """Return why nothing could be judged by the schema at `path`, as a sentence; None if that can be done."""
    # They take long to import, and most workflows have no schema.
    from jsonschema.exceptions import SchemaError as WrongSchemaError  # noqa: PLC0415
    from jsonschema.validators import Draft202012Validator, validator_for  # noqa: PLC0415

    try:
        schema = read_schema(path)
        if not isinstance(schema, dict | bool):
            return f"the schema cannot be used: {path} is neither a table nor a truth value"
        validator_for(schema, default=Draft202012Validator).check_schema(cast(Any, schema))
    except SchemaError as unusable:
        return str(unusable)
    except WrongSchemaError as wrong:
        return f"the schema {path} is wrong at {wrong.json_path}: {wrong.message}"
    except RecursionError:
        return f"the schema cannot be used: {path} is nested too deeply"
    return None

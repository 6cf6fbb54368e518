"""A call's identity: its arguments in canonical form, volatile fields taken out."""

import hashlib
import re
from typing import Final

import msgspec

VOLATILE_KEYS: Final = frozenset({"timestamp", "ts", "time", "now", "nonce", "request_id"})

_VOLATILE_TEXT: Final = re.compile(
    r"""
    \d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?\s?(Z|[+-]\d\d:?\d\d)?      # a timestamp
    | [0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}          # a uuid
    | 1\d{12}                                                               # an epoch in milliseconds
    """,
    re.VERBOSE | re.IGNORECASE,
)
_EPOCH_MS: Final = (1e12, 2e12)
_NESTED: Final = (dict, list)
_NUMBERS: Final = (int, float)
"""Written as `int | float` they would be put together anew for every value of every call."""
_SHORTEST_VOLATILE: Final = 13
_LONGEST_VOLATILE: Final = 40
_LONGEST_DECODED: Final = 1 << 18
"""Bytes. Decoded, arguments that are full of brackets take 50 times their own memory."""

_encoder = msgspec.json.Encoder(order="deterministic")


def fingerprint(args: bytes, longest: int) -> str:
    """Return the canonical text of `args` (JSON), at most `longest` characters and a hash of the whole.

    Total: arguments that cannot be decoded (nesting, encoding, size) are taken as they were written.
    """
    canonical = _canonical(args) if len(args) <= _LONGEST_DECODED else args
    text = canonical.decode(errors="replace")
    if len(text) <= longest:
        return text
    return f"{text[:longest]}#{hashlib.sha256(canonical).hexdigest()}"


def _canonical(args: bytes) -> bytes:
    try:
        return _encoder.encode(_stable(msgspec.json.decode(args)))
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return args


def _stable(value: object) -> object:
    if isinstance(value, dict):
        return {
            key: _stable(inner) if isinstance(inner, _NESTED) else inner
            for key, inner in value.items()
            if key not in VOLATILE_KEYS and not _is_volatile(inner)
        }
    if isinstance(value, list):
        return [_stable(inner) for inner in value if not _is_volatile(inner)]
    # Only the whole of the arguments: the parents of others have left out what is volatile.
    return None if _is_volatile(value) else value


def _is_volatile(value: object) -> bool:
    # No `match`: this is asked of every value of every call, and patterns take three times as long.
    if isinstance(value, str):
        return (
            _SHORTEST_VOLATILE <= len(value) <= _LONGEST_VOLATILE
            and _VOLATILE_TEXT.fullmatch(value) is not None
        )
    if isinstance(value, _NUMBERS):
        return _EPOCH_MS[0] <= value < _EPOCH_MS[1]  # no truth value is
    return False

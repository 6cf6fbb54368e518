"""Specifications of every kind, drawn from so few values that two of them often agree."""

import string
from collections.abc import Mapping
from typing import Final

import msgspec
from hypothesis import strategies as st

from jobs.pinning.pin import Spec
from jobs.thrash.policy import OnDetection
from jobs.verification.spec import (
    BandSpec,
    CommandCheck,
    CountSpec,
    FieldSpec,
    Format,
    Kind,
    StatusSpec,
    WorkflowSpec,
)
from jobs.watchlist.killers import CommandSpec, DryRunSpec, ProcessSpec
from jobs.watchlist.sources import SourceSpec

_TEXTS: Final = st.one_of(
    st.sampled_from(["", " ", "a", "a ", "a\tb", "a b", "é", "\u00a0", "\u200b", "'", "{path}", "x" * 300]),
    st.text(string.printable, max_size=3).map(lambda end: "x" * 210 + end),
    st.text(max_size=4).filter(lambda text: text.isascii() or text.isprintable()),
)
_WORDS: Final = st.lists(_TEXTS, max_size=4).map(tuple)
_ARGV: Final = st.lists(_TEXTS, min_size=1, max_size=4).map(tuple)
_NUMBERS: Final = st.one_of(
    st.sampled_from([0.0, 1.0, 1800.0, 1800.5, 86400.0, 1e18]), st.floats(0, 1e9, allow_nan=False)
)
_WHOLE: Final = st.integers(0, 10**12)
_DIGESTS: Final = st.sampled_from(["a" * 64, "a" * 63 + "b", "c" * 64])
_FILES: Final = st.none() | st.dictionaries(st.sampled_from(["/w/a", "/w/b"]), _DIGESTS)
_SCHEMAS: Final = st.sampled_from(
    ["", "{", "{}", "{ }", '{"a": [1, 2]}', '{"a": [1, 3], "b": null}', '{"a": {"b": 1}}', "[true]", "[1]"]
)


def _maybe(strategy: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.none() | strategy


_FIELDS: Final = st.builds(
    FieldSpec,
    type=_maybe(st.sampled_from(Kind)),
    min=_maybe(_NUMBERS),
    max=_maybe(_NUMBERS),
    min_length=_maybe(_WHOLE),
    max_length=_maybe(_WHOLE),
    pattern=_maybe(_TEXTS),
)
_COMMANDS: Final = st.builds(
    CommandCheck,
    argv=_ARGV,
    exit=st.integers(0, 2),
    timeout=_NUMBERS,
    folder=st.sampled_from(["/", "/w"]),
    files=_FILES,
)
_WORKFLOW: Final[Mapping[str, st.SearchStrategy[object]]] = {
    "name": st.just("nightly"),
    "output": _TEXTS,
    "format": st.sampled_from(Format),
    "required": _WORDS,
    "placeholders": _WORDS,
    "fields": st.dictionaries(_TEXTS, _FIELDS, max_size=2),
    "schema": _maybe(_TEXTS),
    "schema_text": _maybe(_SCHEMAS),
    "timestamp": _maybe(_TEXTS),
    "max_age": _NUMBERS,
    "status": _maybe(st.builds(StatusSpec, field=_TEXTS, allowed=_WORDS)),
    "unchanged": st.booleans(),
    "size": _maybe(st.builds(BandSpec, within=_NUMBERS)),
    "count": _maybe(
        st.builds(CountSpec, of=_TEXTS, within=_maybe(_NUMBERS), min=_maybe(_WHOLE), max=_maybe(_WHOLE))
    ),
    "forbid": _WORDS,
    "command": _maybe(_COMMANDS),
    "max_size": _WHOLE,
    "expect": _maybe(_TEXTS),
    "every": _maybe(_NUMBERS),
    "grace": _NUMBERS,
    "after": _maybe(_TEXTS),
    "settle": _NUMBERS,
}
_SOURCE: Final[Mapping[str, st.SearchStrategy[object]]] = {
    "name": st.just("main"),
    "format": st.sampled_from(["auto", "gateway"]),
    "path": _TEXTS,
    "killer": _maybe(_TEXTS),
    "on_detection": _maybe(st.sampled_from(OnDetection)),
}
_COMMAND_KILLER: Final[Mapping[str, st.SearchStrategy[object]]] = {
    "argv": _ARGV,
    "timeout": _NUMBERS,
    "then": _maybe(_TEXTS),
    "folder": st.sampled_from(["/", "/w"]),
    "files": _FILES,
}
_PROCESS_KILLER: Final[Mapping[str, st.SearchStrategy[object]]] = {
    "match": _TEXTS,
    "pid_file": _maybe(_TEXTS),
    "grace": _NUMBERS,
    "then": _maybe(_TEXTS),
}

WORKFLOWS: Final = st.builds(WorkflowSpec, **_WORKFLOW)
SOURCES: Final = st.builds(SourceSpec, **_SOURCE)
COMMAND_KILLERS: Final = st.builds(CommandSpec, **_COMMAND_KILLER)
PROCESS_KILLERS: Final = st.builds(ProcessSpec, **_PROCESS_KILLER)
KILLERS: Final = COMMAND_KILLERS | PROCESS_KILLERS | st.just(DryRunSpec())


@st.composite
def _edited(
    draw: st.DrawFn, specs: st.SearchStrategy[Spec], fields: Mapping[str, st.SearchStrategy[object]]
) -> tuple[Spec, Spec]:
    """One of some specifications, and the same with a few fields changed."""
    spec = draw(specs)
    names = draw(st.sets(st.sampled_from(sorted(fields)), max_size=3))
    return spec, msgspec.structs.replace(spec, **{name: draw(fields[name]) for name in sorted(names)})


PAIRS: Final = st.one_of(
    _edited(WORKFLOWS, _WORKFLOW),
    _edited(SOURCES, _SOURCE),
    _edited(COMMAND_KILLERS, _COMMAND_KILLER),
    _edited(PROCESS_KILLERS, _PROCESS_KILLER),
    st.tuples(WORKFLOWS, WORKFLOWS),
    st.tuples(SOURCES, SOURCES),
    st.tuples(KILLERS, KILLERS),
)
"""Two of one kind of entry."""

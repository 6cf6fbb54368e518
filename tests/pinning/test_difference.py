"""What a change does to the bar is told field by field, by comparing values."""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

import msgspec
import pytest
from hypothesis import given

from jobs.pinning.change import Change, Mark
from jobs.pinning.difference import difference
from jobs.pinning.pin import Spec
from jobs.pinning.showing import LONGEST
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
from jobs.watchlist.killers import CommandSpec, DryRunSpec, KillerSpec, ProcessSpec
from jobs.watchlist.sources import SourceSpec
from tests.pinning.specs import COMMAND_KILLERS, KILLERS, PAIRS, SOURCES, WORKFLOWS

STRICTER, LOOSER, DIFFERENT = Mark
OPPOSITE: Final = {STRICTER: LOOSER, LOOSER: STRICTER, DIFFERENT: DIFFERENT}
STOP: Final = OnDetection.STOP
KILLER: Final = CommandSpec(argv=("/bin/stop", "{session}"))


def told(
    before: Spec | None,
    after: Spec | None,
    default: OnDetection = STOP,
    killers: Mapping[str, KillerSpec] | None = None,
) -> list[tuple[str, str, str, Mark]]:
    changes = difference(before, after, default, killers)
    return [(change.field, change.before, change.after, change.mark) for change in changes]


def workflow(**fields: Any) -> WorkflowSpec:
    return WorkflowSpec(name="nightly", output="/out/report.json", **fields)


def source(**fields: Any) -> SourceSpec:
    return SourceSpec(name="main", path="/log", **fields)


def check(**fields: Any) -> dict[str, Any]:
    return {"command": CommandCheck(**{"argv": ("/bin/check",), **fields})}


def field(**fields: Any) -> dict[str, Any]:
    return {"fields": {"total": FieldSpec(**fields)}}


def count(**fields: Any) -> dict[str, Any]:
    return {"count": CountSpec(**fields)}


def schema(text: str | None) -> dict[str, Any]:
    return {"schema": "/schema.json", "schema_text": text}


# ── every rule ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("before", "after", "name", "was", "is_now"),
    [
        ({}, {"required": ("total",)}, "required", "", "total"),
        ({"placeholders": ("null",)}, {"placeholders": ("null", "n/a")}, "placeholders", "", "n/a"),
        ({"placeholders": ()}, {"placeholders": ("",)}, "placeholders", "", '""'),
        ({}, {"forbid": ("api_key",)}, "forbid", "", "api_key"),
        ({}, {"schema": "/schema.json"}, "schema", "", "/schema.json"),
        ({}, {"after": "main:coder"}, "after", "", "main:coder"),
        ({"max_age": 86_400.0}, {"max_age": 1800.0}, "max_age", "1 d", "30 min"),
        ({}, {"unchanged": True}, "unchanged", "no", "yes"),
        ({"max_size": 2_000_000}, {"max_size": 1_000_000}, "max_size", "2,000,000 bytes", "1,000,000 bytes"),
        ({}, {"expect": "0 4 * * *"}, "expect", "", "0 4 * * *"),
        ({}, {"every": 3600.0}, "every", "", "1 h"),
        ({"every": 7200.0}, {"every": 3600.0}, "every", "2 h", "1 h"),
        ({"grace": 3600.0}, {"grace": 60.0}, "grace", "1 h", "1 min"),
        ({"format": Format.ANY}, {"format": Format.TEXT}, "format", "any", "text"),
        ({"format": Format.ANY}, {"format": Format.CSV}, "format", "any", "csv"),
        ({"format": Format.TEXT}, {"format": Format.JSON}, "format", "text", "json"),
        ({}, {"size": BandSpec(within=0.5)}, "size.within", "", "0.5"),
        ({"size": BandSpec(within=0.5)}, {"size": BandSpec(within=0.25)}, "size.within", "0.5", "0.25"),
        (
            {"status": StatusSpec(allowed=("ok", "late"))},
            {"status": StatusSpec(allowed=("ok",))},
            "status.allowed",
            "late",
            "",
        ),
        (count(max=3), count(max=3, min=1), "count.min", "", "1"),
        (count(min=1), count(min=2), "count.min", "1", "2"),
        (count(min=1), count(min=1, max=9), "count.max", "", "9"),
        (count(max=9), count(max=8), "count.max", "9", "8"),
        (count(min=1), count(min=1, within=0.5), "count.within", "", "0.5"),
        (count(within=0.5), count(within=0.1), "count.within", "0.5", "0.1"),
        ({}, field(), "fields.total", "", "any value"),
        ({}, field(min=0), "fields.total.min", "", "0"),
        (field(), field(type=Kind.STRING), "fields.total.type", "", "string"),
        (
            {"fields": {"total": FieldSpec(min=1), "name": FieldSpec()}},
            {"fields": {"total": FieldSpec(min=2), "name": FieldSpec()}},
            "fields.total.min",
            "1",
            "2",
        ),
        (field(type=Kind.NUMBER), field(type=Kind.INTEGER), "fields.total.type", "number", "integer"),
        (field(), field(min=0), "fields.total.min", "", "0"),
        (field(min=0), field(min=1), "fields.total.min", "0", "1"),
        (field(), field(max=5), "fields.total.max", "", "5"),
        (field(max=5), field(max=4.5), "fields.total.max", "5", "4.5"),
        (field(min_length=1), field(min_length=2), "fields.total.min_length", "1", "2"),
        (field(max_length=2), field(max_length=1), "fields.total.max_length", "2", "1"),
        (field(), field(pattern="^a"), "fields.total.pattern", "", "^a"),
        (check(timeout=120.0), check(timeout=60.0), "command.timeout", "2 min", "1 min"),
        (check(), check(files={}), "command.files", "any content", "the content approved"),
    ],
)
def test_a_workflow_that_asks_for_more_is_stricter_and_back_it_is_looser(
    before: dict[str, Any], after: dict[str, Any], name: str, was: str, is_now: str
) -> None:
    assert told(workflow(**before), workflow(**after)) == [(name, was, is_now, STRICTER)]
    assert told(workflow(**after), workflow(**before)) == [(name, is_now, was, LOOSER)]


@pytest.mark.parametrize(
    ("before", "after", "name", "was", "is_now"),
    [
        ({"required": ("a", "b")}, {"required": ("b", "a")}, "required", "a, b", "b, a"),
        ({"required": ("a", "a")}, {"required": ("a",)}, "required", "a, a", "a"),
        ({"format": Format.JSON}, {"format": Format.YAML}, "format", "json", "yaml"),
        ({"schema": "/a"}, {"schema": "/b"}, "schema", "/a", "/b"),
        ({"timestamp": "a"}, {"timestamp": "b"}, "timestamp", "a", "b"),
        ({"timestamp": None}, {"timestamp": "made_at"}, "timestamp", "", "made_at"),
        ({"expect": "0 4 * * *"}, {"expect": "0 5 * * *"}, "expect", "0 4 * * *", "0 5 * * *"),
        ({"after": "main:coder"}, {"after": "main:tester"}, "after", "main:coder", "main:tester"),
        ({"settle": 10.0}, {"settle": 60.0}, "settle", "10 s", "1 min"),
        ({"status": StatusSpec()}, {"status": StatusSpec(field="state")}, "status.field", "status", "state"),
        (count(min=1), count(min=1, of="items"), "count.of", '""', "items"),
        (field(type=Kind.STRING), field(type=Kind.NUMBER), "fields.total.type", "string", "number"),
        (field(type=Kind.INTEGER), field(type=Kind.ARRAY), "fields.total.type", "integer", "array"),
        (field(pattern="^a"), field(pattern="a"), "fields.total.pattern", "^a", "a"),
        (check(), check(exit=1), "command.exit", "0", "1"),
        (check(), check(folder="/w"), "command.folder", "/", "/w"),
        (check(argv=("a", "b c")), check(argv=("a",)), "command.argv", "a 'b c'", "a"),
        (
            check(files={"/w/a.py": "ab" * 32, "/w/b.py": "ef" * 32}),
            check(files={"/w/a.py": "cd" * 32, "/w/b.py": "ef" * 32}),
            "content of /w/a.py",
            "sha256 abababab",
            "sha256 cdcdcdcd",
        ),
        (
            check(files={}),
            check(files={"/w/a.py": "ab" * 32}),
            "content of /w/a.py",
            "",
            "sha256 abababab",
        ),
        (
            schema('{"properties": {"total": {"minimum": 1}}, "required": ["a", "b"]}'),
            schema('{"properties": {"total": {"minimum": 0}}, "required": ["a", "b"]}'),
            "schema.properties.total.minimum",
            "1",
            "0",
        ),
        (schema('{"a": 1}'), schema("{}"), "schema.a", "1", ""),
        (schema('{"a": [1, 2]}'), schema('{"a": [1, 3]}'), "schema.a[1]", "2", "3"),
        (schema('{"a": [1]}'), schema('{"a": [1, 3]}'), "schema.a", "[1]", "[1, 3]"),
        (schema("[true]"), schema("[1]"), "schema[0]", "true", "1"),
    ],
)
def test_what_is_neither_stricter_nor_looser_is_different(
    before: dict[str, Any], after: dict[str, Any], name: str, was: str, is_now: str
) -> None:
    assert told(workflow(**before), workflow(**after)) == [(name, was, is_now, DIFFERENT)]
    assert told(workflow(**after), workflow(**before)) == [(name, is_now, was, DIFFERENT)]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("{}", "{ }"),
        ("{ ", "{}"),
        ("[" * 100_000, "{" * 100_000),
    ],
    ids=["only how it is written", "no JSON", "nested too deeply"],
)
def test_a_schema_whose_values_cannot_be_told_one_by_one_is_told_as_it_is_written(
    before: str, after: str
) -> None:
    (name, was, is_now, mark), *_ = told(workflow(**schema(before)), workflow(**schema(after)))
    assert (name, mark) == ("content of the schema", DIFFERENT)
    assert (was.rstrip("…"), is_now.rstrip("…")) == (before[:160], after[:160])


def test_among_many_changes_of_a_schema_none_is_out_of_sight() -> None:
    before = json.dumps({"title": ["x"] * 60, "required": ["total"]})
    after = json.dumps({"title": ["y"] * 60, "required": []})
    changes = told(workflow(**schema(before)), workflow(**schema(after)))
    assert len(changes) == 61
    assert changes[-1] == ("schema.required", '["total"]', "[]", DIFFERENT)


def test_all_of_a_schema_that_is_new_is_told() -> None:
    text = json.dumps({"required": ["x" * 300]})
    pieces = told(workflow(), workflow(**schema(text)))
    shown = [is_now for name, _, is_now, _ in pieces if name.startswith("content of the schema")]
    assert "".join(piece.strip("…") for piece in shown) == text


def test_a_schema_that_is_read_anew_each_time_is_looser_than_one_that_is_pinned() -> None:
    ((name, _, is_now, mark),) = told(workflow(**schema("{}")), workflow(**schema(None)))
    assert (name, is_now, mark) == ("content of the schema", "", LOOSER)


@pytest.mark.parametrize(
    ("before", "after", "default", "expected"),
    [
        ({"killer": None}, {"killer": "cli"}, STOP, ("killer", "", "cli", STRICTER)),
        ({"killer": "cli"}, {"killer": None}, STOP, ("killer", "cli", "", LOOSER)),
        ({"killer": "cli"}, {"killer": "other"}, STOP, ("killer", "cli", "other", DIFFERENT)),
        ({"format": "auto"}, {"format": "gateway"}, STOP, ("format", "auto", "gateway", DIFFERENT)),
        (
            {"on_detection": OnDetection.OBSERVE},
            {"on_detection": OnDetection.ASK},
            STOP,
            ("on_detection", "observe", "ask", STRICTER),
        ),
        (
            {"on_detection": STOP},
            {"on_detection": OnDetection.ASK},
            OnDetection.OBSERVE,
            ("on_detection", "stop", "ask", LOOSER),
        ),
        ({}, {"on_detection": STOP}, STOP, ("on_detection", "stop, by default", "stop", DIFFERENT)),
        (
            {},
            {"on_detection": OnDetection.OBSERVE},
            STOP,
            ("on_detection", "stop, by default", "observe", LOOSER),
        ),
        (
            {"on_detection": OnDetection.ASK},
            {},
            OnDetection.OBSERVE,
            ("on_detection", "ask", "observe, by default", LOOSER),
        ),
    ],
)
def test_a_source_that_leads_to_less_is_looser(
    before: dict[str, Any],
    after: dict[str, Any],
    default: OnDetection,
    expected: tuple[str, str, str, Mark],
) -> None:
    assert told(source(**before), source(**after), default) == [expected]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (
            KILLER,
            DryRunSpec(),
            [
                ("kind", "command", "dry_run", LOOSER),
                ("argv", "/bin/stop '{session}'", "", DIFFERENT),
                ("timeout", "30 s", "", DIFFERENT),
                ("folder", "/", "", DIFFERENT),
            ],
        ),
        (
            DryRunSpec(),
            ProcessSpec(match="agent", then="cli"),
            [
                ("match", "", "agent", DIFFERENT),
                ("grace", "", "10 s", DIFFERENT),
                ("kind", "dry_run", "process", STRICTER),
                ("then", "", "cli", STRICTER),
            ],
        ),
        (
            msgspec.structs.replace(KILLER, then="hard", files={}),
            ProcessSpec(match="agent", then="hard"),
            [
                ("kind", "command", "process", DIFFERENT),
                ("argv", "/bin/stop '{session}'", "", DIFFERENT),
                ("timeout", "30 s", "", DIFFERENT),
                ("folder", "/", "", DIFFERENT),
                ("match", "", "agent", DIFFERENT),
                ("grace", "", "10 s", DIFFERENT),
            ],
        ),
        (
            KILLER,
            msgspec.structs.replace(KILLER, timeout=60.0, then="hard"),
            [("timeout", "30 s", "1 min", LOOSER), ("then", "", "hard", STRICTER)],
        ),
        (
            ProcessSpec(match="agent", then="a", pid_file="/run/a"),
            ProcessSpec(match="a", grace=5.0, then="b"),
            [
                ("match", "agent", "a", DIFFERENT),
                ("pid_file", "/run/a", "", DIFFERENT),
                ("then", "a", "b", DIFFERENT),
                ("grace", "10 s", "5 s", STRICTER),
            ],
        ),
    ],
)
def test_a_killer_that_does_less_is_looser(
    before: Spec, after: Spec, expected: list[tuple[str, str, str, Mark]]
) -> None:
    assert told(before, after) == expected


IN_FORCE: Final[dict[str, KillerSpec]] = {"cli": KILLER, "hard": KILLER, "rehearsal": DryRunSpec()}


@pytest.mark.parametrize(
    ("before", "after", "mark"),
    [
        ("cli", "hard", DIFFERENT),
        ("cli", "rehearsal", LOOSER),
        ("cli", "waits", LOOSER),
        ("cli", None, LOOSER),
        ("rehearsal", "waits", DIFFERENT),
        (None, "waits", DIFFERENT),
        (None, "rehearsal", DIFFERENT),
        ("waits", "cli", STRICTER),
    ],
)
@pytest.mark.parametrize("naming", ["source", "killer", "killer of another kind"])
def test_a_killer_that_is_named_is_worth_what_is_in_force_of_it(
    before: str | None, after: str | None, mark: Mark, naming: str
) -> None:
    """One that waits for approval stops nothing, and neither does a rehearsal."""
    pairs: dict[str, tuple[Spec, Spec]] = {
        "source": (source(killer=before), source(killer=after)),
        "killer": (ProcessSpec(match="a", then=before), ProcessSpec(match="a", then=after)),
        "killer of another kind": (ProcessSpec(match="a", then=before), CommandSpec(argv=("a",), then=after)),
    }
    one, other = pairs[naming]
    field = "killer" if naming == "source" else "then"
    assert (field, before or "", after or "", mark) in told(one, other, STOP, IN_FORCE)


def test_of_a_check_that_is_new_all_is_told() -> None:
    after = workflow(command=CommandCheck(argv=("sh", "/w/a.sh"), folder="/w", files={"/w/a.sh": "ab" * 32}))
    expected = [
        ("command.argv", "", "sh /w/a.sh", STRICTER),
        ("command.exit", "", "0", STRICTER),
        ("command.timeout", "", "1 min", STRICTER),
        ("command.folder", "", "/w", STRICTER),
        ("content of /w/a.sh", "", "sha256 abababab", STRICTER),
    ]
    assert told(workflow(), after) == expected
    assert told(after, workflow()) == [(name, new, old, LOOSER) for name, old, new, _ in expected]


# ── what is new, and what is gone ─────────────────────────────────────────────────────────────────


def test_of_a_new_entry_is_told_what_it_says() -> None:
    new = workflow(required=("total", "status"), status=StatusSpec(), max_age=60.0)
    assert told(None, new) == [
        ("output", "", "/out/report.json", DIFFERENT),
        ("required", "", "total, status", DIFFERENT),
        ("max_age", "", "1 min", DIFFERENT),
        ("status.field", "", "status", DIFFERENT),
        ("status.allowed", "", "ok, partial, failed", DIFFERENT),
    ]
    assert told(None, KILLER) == [
        ("kind", "", "command", DIFFERENT),
        ("argv", "", "/bin/stop '{session}'", DIFFERENT),
    ]
    assert told(None, source(killer="cli", on_detection=OnDetection.ASK)) == [
        ("path", "", "/log", DIFFERENT),
        ("killer", "", "cli", DIFFERENT),
        ("on_detection", "", "ask", DIFFERENT),
    ]


def test_what_is_gone_is_looser_and_all_that_is_lost_is_named() -> None:
    assert told(workflow(required=("total",)), None) == [
        ("output", "/out/report.json", "", LOOSER),
        ("required", "total", "", LOOSER),
    ]
    assert told(None, None) == []


# ── words ─────────────────────────────────────────────────────────────────────────────────────────


def test_what_is_looser_comes_first_and_what_is_stricter_last() -> None:
    before = workflow(required=("a",), max_age=60.0, settle=1.0)
    after = workflow(required=("b",), max_age=120.0, settle=2.0)
    assert [mark for *_, mark in told(before, after)] == [LOOSER, LOOSER, DIFFERENT, STRICTER]


_UNLIKE = [
    *("a filler", "a joiner", "a choice of variant", "a wide letter", "a letter in two parts"),
]


@pytest.mark.parametrize(
    ("before", "after", "was", "is_now"),
    [
        ({"max_age": 1800.0}, {"max_age": 1800.5}, "1800.0", "1800.5"),
        ({"after": "a b"}, {"after": "a\tb"}, '"a b"', '"a\\tb"'),
        ({"after": "a b"}, {"after": "a\u00a0b"}, '"a b"', '"a\\u00a0b"'),
        ({"after": "a"}, {"after": "a\u202eb"}, "a", "a\\u202eb"),
        ({"after": None}, {"after": " "}, "", '" "'),
        ({"after": "rm"}, {"after": "r\u3164m"}, "rm", r"'r\u3164m'"),
        ({"after": "rm"}, {"after": "r\u034fm"}, "rm", r"'r\u034fm'"),
        ({"after": "\u2714"}, {"after": "\u2714\ufe0f"}, "\u2714", r"'\u2714\ufe0f'"),
        ({"after": "rm"}, {"after": "\uff52m"}, "rm", r"'\uff52m'"),
        ({"after": "\u00e9"}, {"after": "e\u0301"}, "\u00e9", r"'e\u0301'"),
    ],
    ids=["a long time", "a tab", "a blank that does not break", "a turn of direction", "a blank", *_UNLIKE],
)
def test_two_values_that_differ_never_look_alike(
    before: dict[str, Any], after: dict[str, Any], was: str, is_now: str
) -> None:
    ((_, old, new, _),) = told(workflow(**before), workflow(**after))
    assert (old, new) == (was, is_now)


def test_a_long_value_is_told_in_pieces_from_where_it_differs() -> None:
    """Nothing is left out: whoever plants something would write it there."""
    before = "x" * 1000 + "harmless" + "y" * 400 + "true"
    after = "x" * 1000 + "innocent" + "y" * 400 + "rm -rf /"
    assert told(workflow(after=before), workflow(after=after)) == [
        (
            "after, from character 961",
            f"…{'x' * 40}harmless{'y' * 112}…",
            f"…{'x' * 40}innocent{'y' * 112}…",
            DIFFERENT,
        ),
        ("after, from character 1,281", f"…{'y' * 128}true", f"…{'y' * 128}rm -rf /", DIFFERENT),
    ]


def test_what_a_long_value_has_lost_or_won_is_told() -> None:
    assert told(workflow(), workflow(**check(argv=("sh", "-c", "x" * 200)))) == [
        ("command.argv", "", f"sh -c {'x' * 154}…", STRICTER),
        ("command.argv, from character 161", "", f"…{'x' * 46}", STRICTER),
        ("command.exit", "", "0", STRICTER),
        ("command.timeout", "", "1 min", STRICTER),
        ("command.folder", "", "/", STRICTER),
    ]


def test_of_a_very_long_value_all_is_told() -> None:
    before, after = workflow(after="a" * 10_000), workflow(after="b" * 9_999 + "c")
    changes = told(before, after)
    assert [name for name, *_ in changes[:2]] == ["after", "after, from character 161"]
    assert "".join(is_now.strip("…") for _, _, is_now, _ in changes) == "b" * 9_999 + "c"


def test_of_a_long_place_both_ends_are_shown() -> None:
    """It ends in what is asked for there."""
    before, after = (workflow(fields={"x" * 300: FieldSpec(min=least)}) for least in (1, 2))
    assert told(before, after) == [(f"fields.{'x' * 73}…{'x' * 76}.min", "1", "2", STRICTER)]


# ── laws ──────────────────────────────────────────────────────────────────────────────────────────


@given(WORKFLOWS | SOURCES | KILLERS)
def test_equal_entries_differ_nowhere(spec: Spec) -> None:
    assert difference(spec, msgspec.structs.replace(spec), STOP) == ()


@given(PAIRS)
def test_two_entries_that_differ_do_so_somewhere(pair: tuple[Spec, Spec]) -> None:
    before, after = pair
    assert bool(difference(before, after, STOP)) is (before != after)


@given(PAIRS)
def test_the_way_back_turns_stricter_into_looser(pair: tuple[Spec, Spec]) -> None:
    def count_of(changes: tuple[Change, ...]) -> Counter[tuple[str, str, str, Mark]]:
        return Counter((each.field, each.before, each.after, each.mark) for each in changes)

    before, after = pair
    back = (
        msgspec.structs.replace(each, before=each.after, after=each.before, mark=OPPOSITE[each.mark])
        for each in difference(after, before, STOP)
    )
    assert count_of(difference(before, after, STOP)) == count_of(tuple(back))


@given(PAIRS)
def test_a_change_is_one_short_line_that_says_what_it_was_and_what_it_is(pair: tuple[Spec, Spec]) -> None:
    for change in difference(*pair, STOP):
        for text in (change.field, change.before, change.after):
            assert len(text) <= LONGEST
            assert text.isprintable()
        assert change.before != change.after


@given(WORKFLOWS | SOURCES | COMMAND_KILLERS)
def test_a_new_entry_is_neither_stricter_nor_looser(spec: Spec) -> None:
    assert {change.mark for change in difference(None, spec, STOP)} <= {DIFFERENT}

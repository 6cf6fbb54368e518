"""A watch list becomes typed sources and killers, or one line that names the place and never a value."""

import glob
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.sources import registry
from jobs.thrash.policy import OnDetection
from jobs.thrash.price import NO_PRICES, Price, Prices
from jobs.watchlist.error import WatchlistError
from jobs.watchlist.killers import CommandSpec, DryRunSpec, ProcessSpec
from jobs.watchlist.reading import Watchlist, parse_watchlist, read_watchlist
from jobs.watchlist.sources import FORMAT_NAMES, SourceSpec

FOLDER = Path("/etc/loopwarden")
FORMATS = ("gateway",)
ALIKE = "must not look like another name, by blanks, variants of letters or what shows as nothing"
SOURCE = """
[[sources]]
name = "main"
format = "gateway"
path = "/var/log/agents/*.jsonl"
"""
KILLER = """
[killers.stopper]
kind = "command"
argv = ["stop", "{session}"]
"""


def parse(text: str, folder: Path = FOLDER) -> Watchlist:
    return parse_watchlist(text, folder, FORMATS)


def error_in(text: str) -> str:
    with pytest.raises(WatchlistError) as caught:
        parse(text)
    assert caught.value.__cause__ is None
    return str(caught.value)


def complaint(text: str) -> str:
    """What is wrong, or nothing."""
    try:
        parse(text)
    except WatchlistError as error:
        return str(error)
    return ""


# ── what is right ─────────────────────────────────────────────────────────────────────────────────


def test_a_whole_watch_list() -> None:
    text = """
        [[sources]]
        name = "main"
        format = "gateway"
        path = "/var/log/agents/*.jsonl"
        killer = "stopper"
        on_detection = "ask"

        [[sources]]
        name = "night shift"
        format = "gateway"
        path = "night.jsonl"

        [killers.stopper]
        kind = "command"
        argv = ["bin/stop", "--session={session}", "{agent}: {reason} {score} {{as is}}"]
        timeout = 5
        then = "signal"

        [killers.signal]
        kind = "process"
        match = "agent\\\\.py"
        pid_file = "run/agent.pid"
        grace = 2.5
        then = "rehearsal"

        [killers.rehearsal]
        kind = "dry_run"
    """
    assert parse(text) == Watchlist(
        sources=(
            SourceSpec(
                name="main",
                format="gateway",
                path="/var/log/agents/*.jsonl",
                killer="stopper",
                on_detection=OnDetection.ASK,
            ),
            SourceSpec(name="night shift", format="gateway", path="/etc/loopwarden/night.jsonl"),
        ),
        killers={
            "stopper": CommandSpec(
                argv=(
                    "/etc/loopwarden/bin/stop",
                    "--session={session}",
                    "{agent}: {reason} {score} {{as is}}",
                ),
                timeout=5,
                then="signal",
                folder="/etc/loopwarden",
            ),
            "signal": ProcessSpec(
                match=r"agent\.py", pid_file="/etc/loopwarden/run/agent.pid", grace=2.5, then="rehearsal"
            ),
            "rehearsal": DryRunSpec(),
        },
    )


def test_prices() -> None:
    """By model name or glob; a name that TOML would take apart stands in quotes."""
    text = (
        SOURCE
        + """
        [prices]
        currency = "EUR"
        "claude-opus-*" = { input = 15, output = 75, cached = 1.5 }
        "gpt-6.1" = { input = 0, output = 0.000001 }

        [prices.local]
        input = 100_000_000
        output = 2
    """
    )
    assert parse(text).prices == Prices(
        models={
            "claude-opus-*": Price(input=15, output=75, cached=1.5),
            "gpt-6.1": Price(input=0, output=0.000001),
            "local": Price(input=100_000_000, output=2),
        },
        currency="EUR",
    )
    assert parse(SOURCE).prices == NO_PRICES
    assert parse(SOURCE + "[prices]").prices == NO_PRICES


def test_what_is_left_out_has_its_default() -> None:
    signal = '[killers.signal]\nkind = "process"\nmatch = "agent"\n'
    watchlist = parse(SOURCE + KILLER + signal)
    assert watchlist.sources[0].on_detection is None
    assert watchlist.sources[0].killer is None
    assert watchlist.killers == {
        "stopper": CommandSpec(argv=("stop", "{session}"), timeout=30, then=None, folder="/etc/loopwarden"),
        "signal": ProcessSpec(match="agent", pid_file=None, grace=10, then=None),
    }


def test_a_program_without_a_slash_is_looked_up_in_path() -> None:
    command = parse(SOURCE + KILLER).killers["stopper"]
    assert isinstance(command, CommandSpec)
    assert command.argv[0] == "stop"


def test_home_is_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    """What stands in front of a glob or a template is itself neither."""
    monkeypatch.setenv("HOME", "/home/[a]{b}")
    text = """
        [[sources]]
        name = "main"
        format = "gateway"
        path = "~/logs/*.jsonl"
        [killers.cli]
        kind = "command"
        argv = ["~/bin/stop"]
        [killers.signal]
        kind = "process"
        match = "agent"
        pid_file = "~/agent.pid"
    """
    watchlist = parse(text)
    assert watchlist.sources[0].path == "/home/[[]a]{b}/logs/*.jsonl"
    assert watchlist.killers["cli"] == CommandSpec(
        argv=("/home/[a]{{b}}/bin/stop",), folder="/etc/loopwarden"
    )
    assert watchlist.killers["signal"] == ProcessSpec(match="agent", pid_file="/home/[a]{b}/agent.pid")


def test_the_watch_lists_own_folder_is_no_pattern(tmp_path: Path) -> None:
    folder = tmp_path / "[ab]{c}"
    folder.mkdir()
    (folder / "one.jsonl").touch()
    text = SOURCE.replace("/var/log/agents/*.jsonl", "*.jsonl") + KILLER.replace('"stop"', '"./stop"')
    watchlist = parse(text, folder)
    assert glob.glob(watchlist.sources[0].path) == [str(folder / "one.jsonl")]  # noqa: PTH207 - as sources read it
    assert watchlist.killers["stopper"] == CommandSpec(
        argv=(f"{tmp_path}/[ab]{{{{c}}}}/stop", "{session}"), folder=f"{folder}"
    )


# ── what is wrong ─────────────────────────────────────────────────────────────────────────────────

KNOWN = "{agent}, {reason}, {score}, {session}"
SIGNAL = '[killers.signal]\nkind = "process"\n'
CLI = '[killers.cli]\nkind = "command"\n'

WRONG_SOURCES = [
    ("", "nothing to watch: there is neither [[sources]] nor [workflows.NAME]"),
    ("sources = []", "nothing to watch: there is neither [[sources]] nor [workflows.NAME]"),
    ('[sources]\nname = "main"', "sources: expected array, got table; each begins with [[sources]]"),
    ("sources = [1]", "sources[0]: expected table, got int"),
    ("sources = [[]]", "sources[0]: expected table, got array"),
    (
        SOURCE + '[[sources]]\nname = "b"\nformat = "gateway"\npath = 1979-05-27',
        "sources[1].path: expected str, got date",
    ),
    ('[[sources]]\nname = "main"\nformat = "gateway"', "sources[0].path: missing"),
    (SOURCE + "killer = 1", "sources[0].killer: expected str, got int"),
    (
        SOURCE + 'on_detection = "kill - at `$.path`"',
        "sources[0].on_detection: expected one of: ask, observe, stop",
    ),
    (SOURCE + "on_detection = true", "sources[0].on_detection: expected str, got bool"),
    (
        SOURCE + 'pth = "x"',
        "sources[0].pth: unknown key (did you mean path?); known: format, killer, name, on_detection, path",
    ),
    (SOURCE.replace("main", ""), "sources[0].name: must not be empty"),
    (SOURCE.replace("main", "a\\nb"), "sources[0].name: must not hold control or invisible characters"),
    (SOURCE.replace("main", "a\\u202eb"), "sources[0].name: must not hold control or invisible characters"),
    (SOURCE.replace("main", "main "), f"sources[0].name: {ALIKE}"),
    (SOURCE.replace("main", "ma\\u3164in"), f"sources[0].name: {ALIKE}"),
    (SOURCE.replace("main", "\\uff4dain"), f"sources[0].name: {ALIKE}"),
    (SOURCE.replace("main", "main\\ufe0f"), f"sources[0].name: {ALIKE}"),
    (SOURCE + SOURCE, "sources[1].name: already the name of sources[0]"),
    (
        SOURCE.replace("gateway", "gatway"),
        "sources.main.format: unknown format (did you mean gateway?); known: auto, gateway",
    ),
    (SOURCE.replace("gateway", "xyz"), "sources.main.format: unknown format; known: auto, gateway"),
    (
        SOURCE.replace("main", "my main").replace("gateway", "x"),
        "sources.'my main'.format: unknown format; known: auto, gateway",
    ),
    (SOURCE.replace("/var/log/agents/*.jsonl", ""), "sources[0].path: must not be empty"),
    (SOURCE.replace("/var/", "\\u0000"), "sources[0].path: must not hold a NUL character"),
    (
        SOURCE.replace("/var/", "~no-such-user/"),
        "sources[0].path: no home folder is known for what follows ~",
    ),
    (SOURCE + 'killer = "stopper"', "sources.main.killer: no killer of that name; known: none"),
    (
        SOURCE + 'killer = "stoper"' + KILLER + '[killers.x]\nkind = "dry_run"',
        "sources.main.killer: no killer of that name (did you mean stopper?); known: stopper, x",
    ),
]
WRONG_KILLERS = [
    ("killers = 1", "killers: expected table, got int"),
    ("[[killers]]", "killers: expected table, got array"),
    ("killers.cli = true", "killers.cli: expected table, got bool"),
    ('[killers.""]\nkind = "dry_run"', "killers.'': must not be empty"),
    (
        '[killers."a\\tb"]\nkind = "dry_run"',
        "killers.'a\\tb': must not hold control or invisible characters",
    ),
    ("[killers.cli]", "killers.cli.kind: missing; known: command, dry_run, process"),
    (
        '[killers.cli]\nkind = "comand"',
        "killers.cli.kind: unknown kind (did you mean command?); known: command, dry_run, process",
    ),
    ("[killers.cli]\nkind = [1]", "killers.cli.kind: expected str, got array"),
    (
        '[killers.cli]\nkind = "dry_run"\nthen = "x"',
        "killers.cli.then: unknown key; known: kind",
    ),
    (
        CLI + 'arg = ["x"]',
        "killers.cli.arg: unknown key (did you mean argv?); known: argv, kind, then, timeout",
    ),
    (CLI + '"a\\nb" = 1', "killers.cli.'a\\nb': unknown key; known: argv, kind, then, timeout"),
    (CLI + "files = {}", "killers.cli.files: unknown key; known: argv, kind, then, timeout"),
    (
        SIGNAL + "files = {}",
        "killers.signal.files: unknown key (did you mean pid_file?); known: grace, kind, match, pid_file, then",
    ),
    (CLI, "killers.cli.argv: missing"),
    (CLI + 'argv = "stop"', "killers.cli.argv: expected array, got str"),
    (CLI + "argv = [1]", "killers.cli.argv[0]: expected str, got int"),
    (CLI + 'argv = ["a", {}]', "killers.cli.argv[1]: expected str, got table"),
    (CLI + "argv = []", "killers.cli.argv: must not be empty"),
    (CLI + 'argv = [""]', "killers.cli.argv[0]: must not be empty"),
    (CLI + 'argv = ["a\\u0000"]', "killers.cli.argv[0]: must not hold a NUL character"),
    (
        CLI + 'argv = ["bin/{agent}"]',
        "killers.cli.argv[0]: must not hold a placeholder; a program is not for a log to choose",
    ),
    (
        CLI + 'argv = ["a", "{sesion}"]',
        f"killers.cli.argv[1]: unknown placeholder (did you mean {{session}}?); known: {KNOWN}",
    ),
    (
        CLI + 'argv = ["a", "{}"]',
        f"killers.cli.argv[1]: unknown placeholder; known: {KNOWN}",
    ),
    (
        CLI + 'argv = ["a", "{session.__class__}"]',
        f"killers.cli.argv[1]: unknown placeholder; known: {KNOWN}",
    ),
    (
        CLI + 'argv = ["a", "{session!r}"]',
        "killers.cli.argv[1]: a placeholder takes neither format nor conversion",
    ),
    (
        CLI + 'argv = ["a", "{score:9}"]',
        "killers.cli.argv[1]: a placeholder takes neither format nor conversion",
    ),
    (
        CLI + 'argv = ["a", "{session"]',
        "killers.cli.argv[1]: a single brace; one that is meant is written {{ or }}",
    ),
    (CLI + 'argv = ["a", "}"]', "killers.cli.argv[1]: a single brace; one that is meant is written {{ or }}"),
    (
        CLI + 'argv = ["a"]\ntimeout = 0',
        "killers.cli.timeout: must be more than 0 and at most 300 seconds",
    ),
    (
        CLI + 'argv = ["a"]\ntimeout = 300.1',
        "killers.cli.timeout: must be more than 0 and at most 300 seconds",
    ),
    (
        CLI + 'argv = ["a"]\ntimeout = nan',
        "killers.cli.timeout: must be more than 0 and at most 300 seconds",
    ),
    (CLI + 'argv = ["a"]\ntimeout = "5"', "killers.cli.timeout: expected float, got str"),
    (CLI + 'argv = ["a"]\ntimeout = true', "killers.cli.timeout: expected float, got bool"),
    (CLI + f'argv = ["a"]\ntimeout = 1{"0" * 400}', "killers.cli.timeout: out of range"),
    (SIGNAL, "killers.signal.match: missing"),
    (SIGNAL + 'match = "(a"', "killers.signal.match: not a regular expression at character 1"),
    (SIGNAL + 'match = "a{4294967296}"', "killers.signal.match: a regular expression too large"),
    (
        SIGNAL + 'match = ".*"',
        "killers.signal.match: must not match an empty text: it would match every process",
    ),
    (
        SIGNAL + 'match = ""',
        "killers.signal.match: must not match an empty text: it would match every process",
    ),
    (
        SIGNAL + 'match = "a"\ngrace = -1',
        "killers.signal.grace: must be more than 0 and at most 300 seconds",
    ),
    (SIGNAL + 'match = "a"\npid_file = ""', "killers.signal.pid_file: must not be empty"),
    (
        SIGNAL + 'match = "a"\nthen = "cli"',
        "killers.signal.then: no killer of that name; known: signal",
    ),
    (SIGNAL + 'match = "a"\nthen = "signal"', "killers.signal.then: leads in a circle"),
    (
        SIGNAL + 'match = "a"\nthen = "cli"\n' + CLI + 'argv = ["a"]\nthen = "signal"',
        "killers.signal.then: leads in a circle",
    ),
]
WRONG_PRICES = [
    ("prices = 5", "prices: expected table, got int"),
    ("[[prices]]", "prices: expected table, got array"),
    ("[prices]\ncurrency = 5", "prices.currency: expected str, got int"),
    ('[prices]\ncurrency = "$"', "prices.currency: must be three capital letters, such as USD"),
    ('[prices]\ncurrency = "usd"', "prices.currency: must be three capital letters, such as USD"),
    ('[prices]\n"" = { input = 1, output = 1 }', "prices.'': must not be empty"),
    ("[prices]\ngpt = 5", "prices.gpt: expected table, got int"),
    ("[prices]\ngpt = { input = 1 }", "prices.gpt.output: missing"),
    ("[prices]\ngpt = {}", "prices.gpt.input: missing"),
    (
        "[prices]\ngpt = { input = 1, output = 1, cashed = 1 }",
        "prices.gpt.cashed: unknown key (did you mean cached?); known: cached, input, output",
    ),
    (
        "[prices]\ngpt-5.1 = { input = 1, output = 1 }",
        "prices.gpt-5: a name with a dot in it must stand in quotes",
    ),
    (
        '[prices]\n"claude-*" = { input = "15", output = 1 }',
        "prices.'claude-*'.input: expected float, got str",
    ),
    ("[prices]\ngpt = { input = 1, output = true }", "prices.gpt.output: expected float, got bool"),
    (f"[prices]\ngpt = {{ input = 1{'0' * 400}, output = 1 }}", "prices.gpt.input: out of range"),
    *(
        (
            f"[prices]\ngpt = {{ input = 1, output = 1, cached = {absurd} }}",
            "prices.gpt.cached: must be from 0 to 100,000,000, money for a million tokens",
        )
        for absurd in ("-0.1", "nan", "inf", "-inf", "1e9")
    ),
]
WRONG_TABLES = [
    (
        "[[source]]",
        "source: unknown table (did you mean sources?); known: killers, prices, sources, workflows",
    ),
    ("[x]", "x: unknown table; known: killers, prices, sources, workflows"),
    (f"{'x' * 100} = 1", f"{'x' * 60}: unknown table; known: killers, prices, sources, workflows"),
]
WRONG_TOML = [
    ("a = 1\nb = hello", "line 2, column 5: invalid value"),
    ("a", "line 1, column 2: expected '=' after a key in a key/value pair"),
    ('a = "b', "line 1, column 7: unterminated string"),
    ("a = [1", "line 1, column 7: unclosed array"),
    ("a = 1 b", "line 1, column 7: expected newline or end of document after a statement"),
    ("[a]\n[a]", "line 2, column 3: not valid TOML, or defined twice"),
    ('a = "\x01"', "line 1, column 6: not valid TOML, or defined twice"),
    (f"a = {'[' * 5000}", "not readable as TOML: nested too deeply, or a number too long"),
    (f"a = {'1' * 5000}", "not readable as TOML: nested too deeply, or a number too long"),
    (f"{'a.' * 5000}b = 1", "not readable as TOML: nested too deeply, or a number too long"),
    (f"a = [1, {{ 'b c' = {2**63} }}]", "a[1].'b c': out of range"),
    (f"a.b = {-(2**63) - 1}", "a.b: out of range"),
]


@pytest.mark.parametrize(("text", "message"), WRONG_SOURCES + WRONG_PRICES + WRONG_TABLES + WRONG_TOML)
def test_an_error_names_the_place(text: str, message: str) -> None:
    assert error_in(text) == message


@pytest.mark.parametrize(("text", "message"), WRONG_KILLERS)
def test_an_error_in_a_killer_names_the_place(text: str, message: str) -> None:
    assert error_in(f"{text}\n{SOURCE}") == message


SECRETS = st.text("QZXJ0123456789", min_size=8, max_size=40).map(lambda text: f"QZ{text}")
"""Values that no name, key or wording looks like."""

HOLES = [
    (SOURCE, "main"),
    (SOURCE, "gateway"),
    (SOURCE + 'killer = "stopper"', "stopper"),
    (SOURCE + 'on_detection = "stop"', "stop"),
    (SOURCE + CLI.replace("command", "HOLE"), "HOLE"),
    (SOURCE + CLI + 'argv = ["a", "{HOLE}"]', "HOLE"),
    (SOURCE + CLI + 'argv = ["a", "{HOLE"]', "HOLE"),
    (SOURCE + CLI + 'argv = ["a", "{session:HOLE}"]', "HOLE"),
    (SOURCE + CLI + 'argv = ["HOLE{session}"]', "HOLE"),
    (SOURCE + CLI + 'argv = "HOLE"', "HOLE"),
    (SOURCE + CLI + 'argv = ["a"]\ntimeout = "HOLE"', "HOLE"),
    (SOURCE + CLI + 'argv = ["a"]\nthen = "HOLE"', "HOLE"),
    (SOURCE + SIGNAL + 'match = "(?P<HOLE>HOLE"', "HOLE"),
    (SOURCE + SIGNAL + 'match = "(?P=HOLE)"', "HOLE"),
    (SOURCE + SIGNAL + 'match = "x"\npid_file = "~HOLE/x"', "HOLE"),
    (SOURCE + SIGNAL + 'match = "(HOLE)?"', "HOLE"),
    (SOURCE + '[prices]\ncurrency = "HOLE"', "HOLE"),
    (SOURCE + '[prices]\ngpt = { input = "HOLE", output = 1 }', "HOLE"),
    (SOURCE + 'killer = "HOLE', "HOLE"),
    (SOURCE + "killer = HOLE", "HOLE"),
    (SOURCE + 'x = "HOLE"', "HOLE"),
]


@given(hole=st.sampled_from(HOLES), secret=SECRETS)
def test_no_error_ever_holds_a_value(hole: tuple[str, str], secret: str) -> None:
    text, place = hole
    message = complaint(text.replace(place, secret))
    assert secret not in message
    assert "\n" not in message


@given(st.text())
def test_any_text_is_a_watch_list_or_one_line(text: str) -> None:
    assert len(complaint(text).splitlines()) <= 1


VALUES = st.recursive(
    st.one_of(st.integers(), st.booleans(), SECRETS.map(lambda text: f'"{text}"'), st.just("2026-01-01")),
    lambda inner: st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(map(str, items))}]"),
).map(lambda value: str(value).lower() if isinstance(value, bool) else str(value))


@given(
    table=st.sampled_from(["[[sources]]", "[killers.cli]", "[killers.signal]"]),
    entries=st.dictionaries(
        st.sampled_from(["name", "format", "path", "killer", "kind", "argv", "match", "timeout", "then"]),
        VALUES,
    ),
)
def test_whatever_stands_in_an_entry_is_not_repeated(table: str, entries: dict[str, str]) -> None:
    text = "\n".join([table, *(f"{key} = {value}" for key, value in entries.items())])
    with pytest.raises(WatchlistError) as caught:
        parse(text)
    assert "QZ" not in str(caught.value)


# ── files ─────────────────────────────────────────────────────────────────────────────────────────


def unreadable(path: Path) -> str:
    with pytest.raises(WatchlistError) as caught:
        read_watchlist(path, FORMATS)
    return str(caught.value)


def test_a_file_is_read_relative_to_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it is itself named relative to where the bot was started, and begins with a byte order mark."""
    file = tmp_path / "loopwarden.toml"
    file.write_text(SOURCE.replace("/var/log/agents/", "logs/"), encoding="utf-8-sig")
    monkeypatch.chdir(tmp_path)
    assert read_watchlist(Path("loopwarden.toml"), FORMATS).sources[0].path == f"{tmp_path}/logs/*.jsonl"


def test_a_missing_file(tmp_path: Path) -> None:
    file = tmp_path / "loopwarden.toml"
    assert unreadable(file) == (
        f"{file}: no such file; write one after loopwarden.example.toml, or let LOOPWARDEN_WATCHLIST name yours"
    )


def test_what_is_no_file(tmp_path: Path) -> None:
    """A pipe is not waited for."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe):
        assert unreadable(path) == f"{path}: not a regular file; name the watch list itself"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    file = tmp_path / "file" / "loopwarden.toml"
    assert unreadable(file) == f"{file}: cannot be read (Not a directory); check its owner and mode"


def test_a_file_that_is_not_utf_8(tmp_path: Path) -> None:
    file = tmp_path / "loopwarden.toml"
    file.write_bytes(b"# caf\xe9\n")
    assert unreadable(file) == f"{file}: not UTF-8 at byte 6; save it as UTF-8"


def test_a_file_that_is_too_large(tmp_path: Path) -> None:
    file = tmp_path / "loopwarden.toml"
    file.write_bytes(b"#" * (1024 * 1024 + 1))
    assert unreadable(file) == f"{file}: larger than 1 MiB; is that the watch list?"


def test_no_more_entries_are_watched_than_can_be_asked_about() -> None:
    source = '[[sources]]\nname = "s{}"\npath = "calls.jsonl"\n'
    many = "".join(map(source.format, range(1000)))
    assert len(parse(many).sources) == 1000
    more = f'{many}[workflows.nightly]\noutput = "out.json"\n'
    assert error_in(more) == "1,001 sources, killers and workflows; at most 1,000 are watched"


def test_a_pin_knows_every_format_that_there_is() -> None:
    assert frozenset(registry.FORMATS) == FORMAT_NAMES

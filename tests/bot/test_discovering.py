"""`loopwarden sources`: what lies at the usual places, and a watch list that reads it."""

import os
import re
import shutil
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from bot.__main__ import main
from bot.glance import Glance
from bot.views.discovered import Discovered, lines_of, nothing_at, watchlist_of
from jobs.sources.ends import Sample
from jobs.sources.registry import FORMATS
from jobs.watchlist.killers import ProcessSpec
from jobs.watchlist.reading import Watchlist, parse_watchlist
from tests.fakes import NOON
from tests.sources.contract import SHARED
from tests.sources.databases import DATA, OpenClaw, OpenCode, openclaw_rows, opencode_rows

pytestmark = pytest.mark.usefixtures("no_settings")

VARIABLES = ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "XDG_DATA_HOME", "OPENCLAW_STATE_DIR")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, with an odd name."""
    home = tmp_path / "home [of] op"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    return home


def put(sample: str, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(DATA / sample, path)


def table_in(out: str) -> list[list[str]]:
    """Return the rows, as words."""
    table = out.partition("\n# For loopwarden.toml")[0]
    return [line.removeprefix("# ").split() for line in table.splitlines() if "/" in line]


def watchlist_in(out: str) -> Watchlist:
    """Read it as it was sent to a file, with the table."""
    return parse_watchlist(out, Path("/nowhere"), FORMATS)


def test_the_logs_of_every_program_are_found_and_can_be_copied(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The entries find in the watch list what the table has counted."""
    put("claude-code/calls.jsonl", home / ".claude/projects/-x/7d0c2f6e.jsonl")
    put("codex/calls.jsonl", home / ".codex/sessions/2026/11/30/rollout-1.jsonl")
    put("codex/unreadable.jsonl", home / ".codex/sessions/2026/11/30/rollout-2.jsonl")
    put("gemini-cli/calls.jsonl", home / ".gemini/tmp/garden/chats/session-1.jsonl")
    put("openclaw/calls.jsonl", home / ".clawdbot/agents/main/sessions/s-1.jsonl")
    with (
        closing(OpenClaw(home / ".openclaw/agents/main/agent/openclaw-agent.sqlite")) as openclaw,
        closing(OpenCode(home / ".local/share/opencode/opencode.db")) as opencode,
    ):
        for row in openclaw_rows():
            openclaw.add(row)
        for event in opencode_rows():
            opencode.add(event)
        assert main(["sources"]) == 0
    said = capsys.readouterr()
    rows = table_in(said.out)
    assert [(row[0], row[1], row[2]) for row in rows] == [
        ("claude-code", "~/.claude/projects/**/*.jsonl", "1"),
        ("codex", "~/.codex/sessions/**/*.jsonl", "2"),
        ("gemini-cli", "~/.gemini/tmp/*/chats/**/*.jsonl", "1"),
        ("openclaw", "~/.openclaw/[as][gt]*/**/openclaw*.sqlite", "1"),
        ("openclaw", "~/.clawdbot/agents/*/sessions/*.jsonl", "1"),
        ("opencode", "~/.local/share/opencode/opencode*.db", "1"),
    ]
    assert all(row[-2] == "ago" or row[-2] == "future" for row in rows)
    assert [row[-1] for row in rows] == ["0", "14", "0", "0", "0", "0"]
    assert said.err == ""
    sources = watchlist_in(said.out).sources
    assert [source.name for source in sources] == [
        *("claude-code", "codex", "gemini-cli", "openclaw", "openclaw-2", "opencode"),
    ]
    assert [source.format for source in sources] == [row[0] for row in rows]
    shown = said.out[said.out.index("# For loopwarden.toml") :]
    active = re.sub(r"^# (?=killer = \"[a-z]|\[killers|kind = |match = )", "", shown, flags=re.MULTILINE)
    stopping = parse_watchlist(active, Path("/nowhere"), FORMATS)
    assert {source.format: source.killer for source in stopping.sources} == {
        name: name if name in stopping.killers else None for name in {source.format for source in sources}
    }
    assert stopping.killers == {
        name: ProcessSpec(match=form.process) for name, form in FORMATS.items() if form.process
    }
    assert sources[0].path == f"{str(home).replace('[', '[[]')}/.claude/projects/**/*.jsonl"


def test_other_folders_are_named_by_the_environment(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The usual ones are looked at all the same: an agent may have been started without the variable."""
    monkeypatch.setenv("CODEX_HOME", f"{tmp_path}/[codex]/")
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / ".claude"))
    put("codex/calls.jsonl", tmp_path / "[codex]/sessions/rollout-1.jsonl")
    put("codex/calls.jsonl", home / ".codex/sessions/rollout-1.jsonl")
    put("claude-code/calls.jsonl", home / ".claude/projects/-x/7d0c2f6e.jsonl")
    assert main(["sources"]) == 0
    out = capsys.readouterr().out
    assert [row[1] for row in table_in(out)] == [
        "~/.claude/projects/**/*.jsonl",
        f"{tmp_path}/[[]codex]/sessions/**/*.jsonl",
        "~/.codex/sessions/**/*.jsonl",
    ]
    assert [source.name for source in watchlist_in(out).sources] == ["claude-code", "codex", "codex-2"]


def test_an_old_home_that_is_a_link_to_the_new_one_is_not_told_twice(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    put("openclaw/calls.jsonl", home / ".openclaw/agents/main/sessions/s-1.jsonl")
    (home / ".clawdbot").symlink_to(home / ".openclaw")
    assert main(["sources"]) == 0
    assert len(table_in(capsys.readouterr().out)) == 1


def test_where_nothing_is_the_places_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Not where a watch list is expected: it may be appended to one."""
    assert main(["sources"]) == 1
    said = capsys.readouterr()
    assert said.out == ""
    lines = said.err.splitlines()
    assert lines[0] == "No logs of agents were found. Looked at:"
    assert "  ~/.claude/projects/**/*.jsonl" in lines
    assert "  ~/.moltbot/agents/*/sessions/*.jsonl" in lines


def test_what_cannot_be_read_is_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    database = home / ".local/share/opencode/opencode.db"
    database.parent.mkdir(parents=True)
    database.write_text("no database\n")
    assert main(["sources"]) == 0
    assert capsys.readouterr().err.endswith("opencode.db is not read: it is no SQLite database.\n")


def test_of_large_logs_the_ends_are_read_and_that_is_said(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What lies a gigabyte before could be anything."""
    log = home / ".codex/sessions/rollout-1.jsonl"
    put("codex/calls.jsonl", log)
    content = log.read_bytes()
    with log.open("r+b") as file:
        file.seek(1 << 30)
        file.write(b"\n" + content)
    assert main(["sources"]) == 0
    out = capsys.readouterr().out
    [row] = table_in(out)
    assert row[2:4] == ["1", "1+"]
    assert row[-1] == "0+"
    assert "\n# + at least: of each place the newest " in out


COMMAND = [sys.executable, "-m", "bot", "sources"]
ENVIRONMENT = {"PYTHONIOENCODING": "ascii", "PYTHONPATH": str(Path(__file__).parents[2])}


def test_it_prints_plain_text_where_nothing_else_can_be_shown(home: Path) -> None:
    """Into a file or a pipe, without UTF-8."""
    put("codex/calls.jsonl", home / ".codex/sessions/rollout-1.jsonl")
    done = subprocess.run(COMMAND, capture_output=True, env=os.environ | ENVIRONMENT, check=True)  # noqa: S603
    assert done.stdout.isascii()
    assert b"\x1b" not in done.stdout
    assert done.stderr == b""


def test_a_reader_that_has_had_enough_is_no_error_to_tell(home: Path) -> None:
    """As in `loopwarden sources | true`."""
    put("codex/calls.jsonl", home / ".codex/sessions/rollout-1.jsonl")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(  # noqa: S603
        COMMAND, stdout=writing, stderr=subprocess.PIPE, env=os.environ | ENVIRONMENT, check=False
    )
    os.close(writing)
    assert done.stderr == b""


def test_real_logs(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Homes of the four programs, laid into one."""
    real = SHARED / "agents"
    if not real.exists():
        pytest.skip("no real logs here")
    for program in ("claude", "codex", "gemini", "opencode"):
        shutil.copytree(real / program, home, dirs_exist_ok=True)
    assert main(["sources"]) == 0
    said = capsys.readouterr()
    rows = table_in(said.out)
    assert [row[0] for row in rows] == ["claude-code", "codex", "gemini-cli", "opencode"]
    assert [row[2:5] for row in rows] == [
        ["8", "8", "119"],
        ["10", "10", "180"],
        ["6", "6", "94"],
        ["1", "5", "88"],
    ]
    assert [row[-1] for row in rows] == ["0"] * 4
    assert said.err == ""


# ── wording ───────────────────────────────────────────────────────────────────────────────────────

SAMPLE = Sample(files=10, size=1 << 20)


def discovered(path: str = "~/logs/*", **seen: object) -> Discovered:
    glance = Glance()
    for name, value in seen.items():
        setattr(glance, name, value)
    return Discovered(name="codex", format="codex", path=path, process=FORMATS["codex"].process, seen=glance)


@pytest.mark.parametrize(
    "path", ['/srv/a"b\\c/*', "/srv/grün/\U0001f600*", "/srv/\x7f\x1b[31m*", "/srv/line\nend/*"]
)
def test_an_entry_names_the_very_path_in_plain_ascii(path: str) -> None:
    text = watchlist_of([discovered(path)])
    assert text.isascii()
    [source] = parse_watchlist(text, Path("/nowhere"), FORMATS).sources
    assert source.path == path


@pytest.mark.parametrize(
    ("last_ts", "is_all", "shown"),
    [
        (NOON - 65, True, "1 min 5 s ago"),
        (NOON + 5, True, "in the future"),
        (None, True, ""),
        (None, False, "?"),
    ],
)
def test_the_last_call_is_told_by_how_long_ago_it_was(
    last_ts: float | None, is_all: bool, shown: str
) -> None:
    table, *_ = lines_of([discovered(last_ts=last_ts, is_all=is_all)], SAMPLE, NOON, "utf-8")
    cells = [str(cell) for cell in table.columns[5].cells]  # type: ignore[union-attr]
    assert cells == [shown]


def test_a_path_cannot_reach_the_terminal() -> None:
    """A variable of the environment is foreign text, too."""
    told = nothing_at(["/srv/\x1b[31m\u202egrün"], "ascii")
    assert told.splitlines()[1] == "  /srv/gr\\xfcn"

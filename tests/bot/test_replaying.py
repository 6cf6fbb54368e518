"""`loopwarden replay`: a table for people, lines for programs, and what could not be read."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import pytest

from bot.__main__ import main
from bot.settings import ThrashSettings
from bot.views.replayed import lines_of
from jobs.replay.event import Event, EventKind, Saved
from tests.fakes import NOON
from tests.sources.databases import OpenClaw, Row

pytestmark = pytest.mark.usefixtures("no_settings")


def line(ts: float, command: str, *, session: str = "s-1", tokens: int | None = 7) -> str:
    call = {
        "ts": ts,
        "agentId": "coder",
        "sessionId": session,
        "tool": "exec",
        "args": {"command": command},
        "tokens": tokens,
    }
    return json.dumps(call) + "\n"


def circles(calls: int, *, session: str = "s-1") -> str:
    return "".join(line(NOON + 5 * n, "pytest -x", session=session) for n in range(calls))


def works(calls: int, *, session: str = "s-2") -> str:
    return "".join(line(NOON + 5 * n, f"{n}" * 40, session=session) for n in range(calls))


@pytest.fixture
def log(tmp_path: Path) -> str:
    (tmp_path / "calls.jsonl").write_text(circles(100) + works(20))
    return "calls.jsonl"


def events_in(out: str) -> list[dict[str, object]]:
    return [json.loads(each) for each in out.splitlines()]


# ── for programs ──────────────────────────────────────────────────────────────────────────────────


def test_each_alert_and_each_stop_is_an_object_a_line(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The path as it was given, the session as the log names it, the index of the newest call that had been seen."""
    assert main(["replay", "--format", "gateway", "--json", log]) == 0
    said = capsys.readouterr()
    common = {
        "path": "calls.jsonl",
        "session": "s-1",
        "agent": "coder",
        "kind": "thrash_loop",
        "tool": "exec",
        "score": 10,
        "reason": "thrash_loop:10",
    }
    assert events_in(said.out) == [
        {**common, "event": "alert", "call": 12, "ts": NOON + 60},
        {
            **common,
            "event": "kill",
            "call": 36,
            "ts": NOON + 180,
            "saved": {
                "calls": 63,
                "seconds": 315.0,
                "tokens": 441,
                "cost": None,
                "currency": None,
                "unpriced": 0,
            },
        },
    ]
    assert said.err == ""


def test_every_path_is_a_log_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sessions of the same name in logs that were named apart have nothing to do with each other."""
    for name in ("one", "two"):
        (tmp_path / f"{name}.jsonl").write_text(circles(8))
    assert main(["replay", "--json", "one.jsonl", "two.jsonl"]) == 0
    assert [event["path"] for event in events_in(capsys.readouterr().out)] == ["one.jsonl", "two.jsonl"]


def test_files_of_one_folder_go_on_from_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A rotated log is one log, told by when its files were written."""
    lines = circles(100).splitlines(keepends=True)
    for name, part, written in (
        ("calls.jsonl", lines[30:], NOON + 500),
        ("calls.jsonl.1", lines[:30], NOON + 150),
    ):
        path = tmp_path / "logs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(part))
        os.utime(path, (written, written))
    assert main(["replay", "--json", "logs"]) == 0
    events = events_in(capsys.readouterr().out)
    assert [(event["event"], event["path"], event["call"]) for event in events] == [
        ("alert", "logs/calls.jsonl.1", 12),
        ("kill", "logs/calls.jsonl", 6),
    ]


@pytest.mark.parametrize("path", ["~/*.jsonl", "~/calls.jsonl", "~"])
def test_a_path_may_begin_at_home(path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In quotes, too, where the shell leaves it as it is."""
    home = tmp_path / "home [of] op"
    home.mkdir()
    (home / "calls.jsonl").write_text(circles(100))
    monkeypatch.setenv("HOME", str(home))
    assert main(["replay", path]) == 0


def test_a_file_that_is_named_twice_is_read_once(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    """By itself, by its folder, or by a pattern."""
    assert main(["replay", "--json", log, log, ".", "*.jsonl"]) == 0
    said = capsys.readouterr()
    assert (len(events_in(said.out)), said.err) == (2, "")


@pytest.mark.parametrize(
    ("calls", "written"), [(100, NOON + 900), (40, NOON), (40, NOON + 900)], ids=["whole", "older", "touched"]
)
def test_a_copy_of_a_log_changes_nothing(
    calls: int, written: float, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Be it whole or from before the log went on, and whichever of them was written to last."""
    (tmp_path / "alone").mkdir()
    (tmp_path / "alone" / "s-1.jsonl").write_text("".join(map(answer, range(100))))
    os.utime(tmp_path / "alone" / "s-1.jsonl", (NOON + 500, NOON + 500))
    shutil.copytree(tmp_path / "alone", tmp_path / "both" / "project")
    copy = tmp_path / "both" / "backup" / "s-1.jsonl"
    copy.parent.mkdir()
    copy.write_text("".join(map(answer, range(calls))))
    os.utime(copy, (written, written))
    said = []
    for folder in ("alone", "both"):
        assert main(["replay", folder]) == 0
        said.append(capsys.readouterr().out)
    assert "100 calls of 1 session read" in said[0]
    assert said[0] == said[1]


def test_a_session_that_is_in_a_database_and_in_a_log_of_lines_counts_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As with OpenClaw, whose older releases have left files of lines behind."""
    with closing(OpenClaw(tmp_path / "openclaw-agent.sqlite")) as database:
        database.session("s-1", "agent:main:s-1")
        for number in range(100):
            database.add(Row("s-1", number, turn(number), int(NOON * 1000) + number))
    lines = [json.dumps({"type": "session", "version": 3, "id": "s-1"}).encode(), *map(turn, range(100))]
    (tmp_path / "s-1.jsonl").write_bytes(b"".join(each + b"\n" for each in lines))
    assert main(["replay", "."]) == 0
    assert "100 calls of 1 session read; 1 session alerted, 1 stopped, which would have saved 63 calls" in (
        capsys.readouterr().out
    )


def test_who_stops_reading_ends_it_without_a_complaint(tmp_path: Path) -> None:
    """As in `loopwarden replay --json logs | head -1`."""
    sessions = [circles(40, session=f"s-{number}") for number in range(300)]
    (tmp_path / "calls.jsonl").write_text("".join(sessions))
    command = [sys.executable, "-m", "bot", "replay", "--json", str(tmp_path / "calls.jsonl")]
    root = Path(__file__).parents[2]
    with subprocess.Popen(  # noqa: S603 - our own program
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=root
    ) as done:
        assert done.stdout is not None
        assert done.stderr is not None
        assert json.loads(done.stdout.readline())["event"] == "alert"
        done.stdout.close()
        assert done.stderr.read() == ""
    assert done.returncode == 0


# ── for people ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.usefixtures("log")
def test_people_get_a_table_with_a_row_for_each_session(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "short.jsonl").write_text(circles(13, session="s-3"))
    assert main(["replay", "*.jsonl"]) == 0
    said = capsys.readouterr()
    rows = [" ".join(each.split()) for each in said.out.splitlines() if each.strip()]
    assert rows[2:-1] == [
        "2027-01-15 08:01:00 coder s-3 alerted: thrash_loop, exec 10",
        "2027-01-15 08:03:00 coder s-1 stopped: thrash_loop, exec 10 63 calls, 5 min 15 s, 441 tokens",
    ]
    assert rows[-1] == (
        "133 calls of 3 sessions read; 2 sessions alerted, 1 stopped, "
        "which would have saved 63 calls, 5 min 15 s, 441 tokens."
    )
    assert said.err == ""


def test_a_terminal_shows_how_far_it_has_come(log: str, tmp_path: Path) -> None:
    """Only there: the bar is on standard error, and gone when the table comes."""
    terminal, end = os.openpty()
    command = [sys.executable, "-m", "bot", "replay", str(tmp_path / log)]
    with os.fdopen(terminal, "rb", buffering=0) as shown:
        done = subprocess.run(  # noqa: S603 - our own program
            command,
            stdout=subprocess.PIPE,
            stderr=end,
            check=True,
            cwd=Path(__file__).parents[2],
            env={**os.environ, "TERM": "xterm"},
        )
        os.close(end)
        assert b"Reading" in shown.read(4096)
    assert b"Reading" not in done.stdout


def test_nothing_found_is_said_with_how_much_was_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "calls.jsonl").write_text(works(20))
    assert main(["replay", "calls.jsonl"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "Nothing would have been alerted: 20 calls of 1 session read.",
        HINT,
    ]


HINT = "A look comes only every 1 min; --set thrash.every=5 looks more often."


def test_where_nothing_would_have_been_saved_it_is_said_how_to_look_more_often(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An agent that is done within two minutes is over before the third look; looks that are close find it."""
    (tmp_path / "calls.jsonl").write_text(circles(20))
    assert main(["replay", "calls.jsonl"]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == HINT
    assert main(["replay", "--set", "thrash.every=5", "calls.jsonl"]) == 0
    assert "1 stopped, which would have saved" in capsys.readouterr().out.splitlines()[-1]
    assert HINT not in shown([event(EventKind.KILL, saved=Saved(calls=2, seconds=3))])
    assert HINT in shown([event(EventKind.KILL, saved=Saved())])
    assert len(list(lines_of([], 1, 1, 5, "utf-8"))) == 1
    assert len(list(lines_of([], 0, 0, 60, "utf-8"))) == 1


def test_alerts_alone_save_nothing() -> None:
    assert shown([event()])[-2:] == ["1 call of 1 session read; 1 session alerted, 0 stopped.", HINT]


def test_a_log_without_tokens_and_a_stop_too_late_are_told_as_such() -> None:
    first = event(EventKind.KILL, saved=Saved(calls=2, seconds=3))
    assert shown([first])[-1].endswith("1 stopped, which would have saved 2 calls, 3 s.")
    late = event(EventKind.KILL, saved=Saved())
    assert shown([late])[-2].endswith("1 stopped, which would have saved nothing.")


def test_what_a_log_names_cannot_draw_on_the_terminal() -> None:
    """Control characters and marks are taken out of names; what the terminal cannot show is written in ASCII."""
    name = "\x1b[31mred\x07 [bold]日本"
    assert "red [bold]日本" in row_of(event(agent=name), "utf-8")
    assert "red [bold]\\u65e5\\u672c" in row_of(event(agent=name), "ascii")
    assert f"|{'x' * 23}...|" in row_of(event(agent="x" * 99), "ascii")


def event(kind: EventKind = EventKind.ALERT, *, agent: str = "coder", saved: Saved | None = None) -> Event:
    return Event(
        event=kind,
        path="log",
        session="s-1",
        agent=agent,
        call=0,
        ts=NOON,
        kind="thrash_loop",
        tool="exec",
        score=8,
        reason="thrash_loop:8",
        saved=saved,
    )


def shown(events: Sequence[Event]) -> list[str]:
    return [str(each) for each in lines_of(events, 1, 1, 60, "utf-8")]


def row_of(found: Event, encoding: str) -> str:
    table, *_ = lines_of([found], 1, 1, 60, encoding)
    return "|".join(str(cell) for column in table.columns for cell in column.cells)  # type: ignore[union-attr]


# ── money ─────────────────────────────────────────────────────────────────────────────────────────

PRICES = """
[[sources]]
name = "a"
path = "nowhere"

[prices]
currency = "EUR"
"claude-*" = { input = 10, output = 10 }
"""


def answer(number: int, model: str = "claude-9") -> str:
    """A call as Claude Code writes it: a thousand tokens."""
    at = datetime.fromtimestamp(NOON + 5 * number, UTC).isoformat()
    call = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {"command": "pytest -x"}}
    usage = {"input_tokens": 900, "output_tokens": 100}
    message = {"id": f"msg_{number}", "model": model, "content": [call], "usage": usage}
    record = {"type": "assistant", "sessionId": "s-1", "timestamp": at, "message": message}
    return json.dumps(record) + "\n"


@pytest.fixture
def answers(tmp_path: Path) -> str:
    (tmp_path / "s-1.jsonl").write_text("".join(answer(number) for number in range(100)))
    return "s-1.jsonl"


def test_money_is_told_where_the_watch_list_has_prices(
    answers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "loopwarden.toml").write_text(PRICES)
    assert main(["replay", answers]) == 0
    saved = "63 calls, 5 min 15 s, 63\u202f000 tokens, €0.63"
    *_, row, total = capsys.readouterr().out.splitlines()
    assert saved in row or saved in total
    assert total.endswith(f"which would have saved {saved}.")


def test_the_watch_list_is_the_one_that_the_bot_reads(
    answers: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine.toml").write_text(PRICES)
    monkeypatch.setenv("LOOPWARDEN_WATCHLIST", "mine.toml")
    assert main(["replay", "--json", answers]) == 0
    saved = events_in(capsys.readouterr().out)[-1]["saved"]
    assert saved == {
        "calls": 63,
        "seconds": 315.0,
        "tokens": 63_000,
        "cost": 0.63,
        "currency": "EUR",
        "unpriced": 0,
    }


def turn(number: int) -> bytes:
    """A call as OpenClaw writes it: a tenth of a cent, by its own account."""
    ms = int((NOON + 5 * number) * 1000)
    call = {"type": "toolCall", "id": f"call_{number}", "name": "exec", "arguments": {"command": "pytest"}}
    usage = {"input": 90, "output": 10, "totalTokens": 100, "cost": {"total": 0.001}}
    message = {"role": "assistant", "content": [call], "model": "m", "usage": usage, "timestamp": ms}
    at = datetime.fromtimestamp(ms / 1000, UTC).isoformat()
    record = {"type": "message", "id": f"e{number}", "timestamp": at, "message": message}
    return json.dumps(record).encode()


def test_each_session_of_a_database_is_a_log_of_its_own_with_its_own_money(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its calls are counted by themselves; the log's own word goes before any price."""
    with closing(OpenClaw(tmp_path / "openclaw-agent.sqlite")) as database:
        for name in ("s-1", "s-2"):
            database.session(name, f"agent:main:{name}")
            for number in range(100):
                database.add(Row(name, number, turn(number), int(NOON * 1000) + number))
    assert main(["replay", "--json", "openclaw-agent.sqlite"]) == 0
    events = events_in(capsys.readouterr().out)
    assert [(event["event"], event["call"]) for event in events] == [("alert", 12)] * 2 + [("kill", 36)] * 2
    assert {event["session"] for event in events} == {"s-1", "s-2"}
    assert events[-1]["saved"] == {
        "calls": 63,
        "seconds": 315.0,
        "tokens": 6_300,
        "cost": 0.063,
        "currency": "USD",
        "unpriced": 0,
    }


def test_a_wrong_watch_list_is_named_and_leaves_only_tokens(
    answers: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "loopwarden.toml").write_text("[prices]\ncurrency = 1\n")
    assert main(["replay", answers]) == 0
    said = capsys.readouterr()
    assert "63\u202f000 tokens." in said.out
    assert said.err == (
        "loopwarden: No price is known: the watch list is wrong (prices.currency: expected str, got int).\n"
    )


def test_a_sum_that_is_only_partly_priced_is_marked() -> None:
    """Of one session, and of several of which one has no price at all."""
    part = Saved(calls=2, seconds=3, tokens=50, cost=1.2, currency="USD", unpriced=20)
    assert shown([event(EventKind.KILL, saved=part)])[-1].endswith("2 calls, 3 s, 50 tokens, at least $1.20.")
    whole = Saved(calls=2, seconds=3, tokens=50, cost=1.2, currency="USD")
    assert shown([event(EventKind.KILL, saved=whole)])[-1].endswith("50 tokens, $1.20.")
    none = Saved(calls=2, seconds=3, tokens=50)
    both = [event(EventKind.KILL, saved=whole), event(EventKind.KILL, saved=none)]
    assert shown(both)[-1].endswith("100 tokens, at least $1.20.")


# ── what cannot be read ───────────────────────────────────────────────────────────────────────────


def test_a_file_that_nobody_recognises_is_named_and_left_out(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("Buy milk.\n")
    assert main(["replay", "--json", log, "notes.txt"]) == 0
    said = capsys.readouterr()
    assert len(events_in(said.out)) == 2
    assert said.err == "loopwarden: notes.txt is left out: its format is not known.\n"


def test_lines_that_cannot_be_read_are_counted(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / log).open("a") as file:
        file.write("{\n" * 3)
    assert main(["replay", log]) == 0
    assert capsys.readouterr().err == "loopwarden: 3 lines could not be read.\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.jsonl"], "none.jsonl is not there."),
        (["notes.txt"], "notes.txt is left out: its format is not known."),
        (["--format", "gateway", "notes.txt"], "1 line could not be read."),
        (["--format", "codex", "s-1.jsonl"], "No call of format codex is in 1 file of format claude-code."),
        (["--format", "codex", "notes.txt"], "No call of format codex is in 1 file of no known format."),
        (["damaged.db"], "damaged.db cannot be read: file is not a database."),
        (["--format", "gateway", "old.gz"], "old.gz is passed over: it is compressed, or gone."),
    ],
)
def test_if_nothing_can_be_read_that_is_an_error(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("Buy milk.\n")
    (tmp_path / "old.gz").write_text("")
    (tmp_path / "damaged.db").write_bytes(b"SQLite format 3\0trash")
    (tmp_path / "s-1.jsonl").write_text(answer(0))
    assert main(["replay", *arguments]) == 1
    assert said in capsys.readouterr().err


def test_a_hole_of_exabytes_ends_at_once_and_is_named(
    log: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It costs its writer nothing. What comes before it and after it counts."""
    before, after = "".join(circles(20)), "".join(circles(100).splitlines(keepends=True)[20:])
    with (tmp_path / log).open("wb") as file:
        file.write(before.encode())
        file.seek(1 << 42)
        file.write(f"\n{after}".encode())
    assert main(["replay", "--format", "gateway", "--json", log]) == 0
    said = capsys.readouterr()
    assert [event["call"] for event in events_in(said.out)] == [12, 36]
    hole = f"{log} has a hole, or something else that is no line, of 16 MiB or more."
    assert said.err == f"loopwarden: {hole}\nloopwarden: 1 line could not be read.\n"


def test_an_empty_log_is_no_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "calls.jsonl").write_text("")
    assert main(["replay", "--format", "gateway", "calls.jsonl"]) == 0
    assert "0 calls of 0 sessions read" in capsys.readouterr().out


# ── other numbers ─────────────────────────────────────────────────────────────────────────────────


def test_another_number_for_the_rule_counts(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", "--json", "--set", "thrash.kill_after=2", "--set", "thrash.every=30", log]) == 0
    assert [event["ts"] for event in events_in(capsys.readouterr().out)] == [NOON + 30, NOON + 60]


def test_the_settings_of_the_bot_do_not_count(
    log: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What is not said on the command line is as it was shipped."""
    monkeypatch.setenv("LOOPWARDEN_THRASH__KILL_AFTER", "1")
    assert main(["replay", "--json", log]) == 0
    assert [event["ts"] for event in events_in(capsys.readouterr().out)] == [NOON + 60, NOON + 180]


@pytest.mark.parametrize("name", ThrashSettings.model_fields)
def test_every_number_of_the_settings_can_be_given(name: str, log: str) -> None:
    value = getattr(ThrashSettings(), name)
    assert main(["replay", "--set", f"thrash.{name}={value}", log]) == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--set", "thrash.kill_after"], "thrash.kill_after: must be thrash.NAME=VALUE"),
        (["--set", "kill_after=2"], "kill_after: no such setting; did you mean thrash.kill_after?"),
        (
            ["--set", "thrash.kil_after=2"],
            "thrash.kil_after: no such setting; did you mean thrash.kill_after?",
        ),
        (
            ["--set", "thrash.nope=2"],
            "thrash.nope: no such setting; there are thrash.distance, thrash.every, ",
        ),
        (["--set", "thrash.kill_after=two"], "thrash.kill_after: Input should be a valid integer"),
        (["--set", "thrash.every=0"], "thrash.every: Input should be greater than or equal to 1"),
        (["--set", "thrash.last=3"], "thrash.threshold cannot be above thrash.last"),
        (["--format", "gatway"], "--format gatway: no such format, only auto, "),
    ],
)
def test_what_was_asked_wrongly_is_named(
    arguments: list[str], complaint: str, log: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["replay", *arguments, log]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith(f"loopwarden: that cannot be replayed:\n{complaint}")


def test_without_a_path_there_is_nothing_to_replay(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["replay"])
    assert ended.value.code == 2
    assert "PATH" in capsys.readouterr().err


def test_the_chat_is_not_loaded(log: str, tmp_path: Path) -> None:
    """It starts at once: aiogram alone would take seconds."""
    code = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from bot.__main__ import main
main(["replay", "--json", {log!r}])
print([name for name in ("aiogram", "aiosqlite", "apscheduler") if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path
    )
    assert done.stderr == "[]\n"

"""What the files hold that a specification refers to is pinned with it, and looked at again before they are run."""

import os
import threading
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest

from jobs import contents
from jobs.contents import IN_TURN, LARGEST_SCHEMA, differing_files, not_pinned, with_contents
from jobs.opening import keep_away_from
from jobs.verification.spec import CommandCheck, WorkflowSpec
from jobs.watchlist.killers import CommandSpec, DryRunSpec, ProcessSpec
from jobs.watchlist.sources import SourceSpec


def digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def files_of(folder: Path, *argv: str) -> dict[str, str]:
    """Those of a workflow's check; a killer's are the same."""
    checked = with_contents(WorkflowSpec(command=CommandCheck(argv=argv, folder=str(folder))))
    assert checked.command is not None
    assert checked.command.files is not None
    return checked.command.files


def loose(folder: Path, *argv: str) -> tuple[str, ...]:
    """Beside what every command may do."""
    spec = with_contents(WorkflowSpec(command=CommandCheck(argv=argv, folder=str(folder))))
    first, *others = not_pinned(spec)
    assert first == IN_TURN
    return tuple(others)


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "check.sh"
    path.write_text("exit 0")
    return path


def open_descriptors() -> list[str]:
    return sorted(os.listdir("/proc/self/fd"))  # noqa: PTH208 - the names are all there is


# ── which files ───────────────────────────────────────────────────────────────────────────────────


def test_each_argument_that_is_a_regular_file_is_pinned(tmp_path: Path, script: Path) -> None:
    """Relative ones start from the folder that the command runs in."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data/limits.json").write_text("{}")
    assert files_of(tmp_path, "/bin/sh", "check.sh", "data/limits.json", f"{script}", "word") == {
        "/bin/sh": digest(Path("/bin/sh").read_bytes()),
        f"{tmp_path}/check.sh": digest(b"exit 0"),
        f"{tmp_path}/data/limits.json": digest(b"{}"),
    }


def test_a_killers_relative_arguments_start_from_its_folder_too(tmp_path: Path, script: Path) -> None:
    killer = CommandSpec(argv=("sh", "check.sh"), folder=f"{tmp_path}")
    assert with_contents(killer).files == {f"{script}": digest(b"exit 0")}


def test_braces_that_are_meant_stand_for_themselves(tmp_path: Path) -> None:
    (tmp_path / "{a}").write_text("a")
    assert files_of(tmp_path, "sh", "{{a}}") == {f"{tmp_path}/{{a}}": digest(b"a")}


def test_a_program_without_a_slash_is_found_on_the_path(tmp_path: Path, script: Path) -> None:
    """What lies in the folder under its name is not what is run."""
    assert files_of(tmp_path, script.name) == {}
    assert loose(tmp_path, script.name) == ("check.sh, which is found on the PATH",)


def test_a_link_is_what_it_leads_to(tmp_path: Path, script: Path) -> None:
    (tmp_path / "link").symlink_to(script)
    (tmp_path / "lost").symlink_to(tmp_path / "nowhere")
    assert files_of(tmp_path, "sh", "link", "lost") == {f"{tmp_path}/link": digest(b"exit 0")}


def test_what_else_lies_there_is_not_opened(tmp_path: Path) -> None:
    """A pipe would wait for its writer."""
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    before = open_descriptors()
    assert files_of(tmp_path, "sh", "pipe", "folder", "/dev/tty", "", "x" * 5000) == {}
    assert open_descriptors() == before


def test_what_becomes_a_pipe_while_it_is_opened_is_none(
    tmp_path: Path, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(path: str) -> int:
        script.unlink()
        os.mkfifo(script)
        return os.open(path, os.O_RDONLY | os.O_NONBLOCK)

    monkeypatch.setattr(contents, "opened_to_read", opened)
    before = open_descriptors()
    assert files_of(tmp_path, "sh", "check.sh") == {}
    assert open_descriptors() == before


def test_the_bots_own_database_is_not_read(tmp_path: Path, script: Path) -> None:
    keep_away_from(script)
    try:
        assert files_of(tmp_path, "sh", "check.sh") == {}
    finally:
        keep_away_from(tmp_path / "none")


def test_a_file_that_is_too_large_is_not_pinned(
    tmp_path: Path, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(contents, "_LARGEST", 6)
    assert list(files_of(tmp_path, "sh", "check.sh")) == [f"{script}"]
    script.write_text("exit 10")
    assert files_of(tmp_path, "sh", "check.sh") == {}
    assert loose(tmp_path, "/sh", "check.sh") == (
        f"{script}, which cannot be read, or has more than 6 bytes",
    )


def test_a_file_that_grows_is_read_up_to_the_limit(
    tmp_path: Path, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def growing(path: str) -> int:
        file = os.open(path, os.O_RDONLY)
        threading.Thread(target=script.write_text, args=("x" * 100,)).run()
        return file

    monkeypatch.setattr(contents, "_LARGEST", 20)
    monkeypatch.setattr(contents, "_check", lambda *_: None)
    monkeypatch.setattr(contents, "opened_to_read", growing)
    assert files_of(tmp_path, "sh", "check.sh") == {}


def test_only_commands_and_schemas_have_contents() -> None:
    specs = (
        SourceSpec(name="main", path="/log"),
        ProcessSpec(match="agent"),
        DryRunSpec(),
        WorkflowSpec(name="nightly"),
    )
    for spec in specs:
        assert with_contents(spec) == spec
        assert not_pinned(spec) == ()


# ── digests that are known ────────────────────────────────────────────────────────────────────────


def test_a_file_that_has_not_changed_is_not_read_again(
    tmp_path: Path, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = files_of(tmp_path, "sh", "check.sh")
    monkeypatch.delattr(contents, "_pieces")
    assert files_of(tmp_path, "sh", "check.sh") == found
    assert script.exists()


def test_a_changed_and_a_replaced_file_are_read_again(tmp_path: Path, script: Path) -> None:
    """Also one of the same size whose times were set back."""
    seen = script.stat()
    found = files_of(tmp_path, "sh", "check.sh")
    script.write_text("exit 1")
    os.utime(script, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    changed = files_of(tmp_path, "sh", "check.sh")
    (tmp_path / "other").write_text("exit 2")
    (tmp_path / "other").replace(script)
    replaced = files_of(tmp_path, "sh", "check.sh")
    assert [each[f"{script}"] for each in (found, changed, replaced)] == [
        digest(b"exit 0"),
        digest(b"exit 1"),
        digest(b"exit 2"),
    ]


def test_the_digest_of_a_file_that_changes_while_it_is_read_is_not_kept(
    tmp_path: Path, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hurried(file: int, most: int) -> list[bytes]:
        content = os.read(file, most)
        script.write_text("exit 1 and more")
        return [content]

    with monkeypatch.context() as patched:
        patched.setattr(contents, "_pieces", hurried)
        assert files_of(tmp_path, "sh", "check.sh") == {f"{script}": digest(b"exit 0")}
    assert files_of(tmp_path, "sh", "check.sh") == {f"{script}": digest(b"exit 1 and more")}


def test_not_all_digests_are_kept_for_ever(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "_MOST_KEPT", 3)
    known: dict[tuple[int, ...], str] = {}
    monkeypatch.setattr(contents, "_digests", known)
    for each in range(10):
        (tmp_path / f"{each}").write_text(f"{each}")
        files_of(tmp_path, "sh", f"{each}")
        assert len(known) <= 3


# ── right before it is run ────────────────────────────────────────────────────────────────────────


def differing(folder: Path, files: dict[str, str], *argv: str) -> str | None:
    return next(differing_files(argv, str(folder), files), None)


def test_what_is_as_it_was_may_be_run(tmp_path: Path, script: Path) -> None:
    argv = ("/bin/sh", "check.sh", "word", "{path}", "-x")
    assert differing(tmp_path, files_of(tmp_path, *argv), *argv) is None
    script.touch()
    assert differing(tmp_path, files_of(tmp_path, *argv), *argv) is None


def test_what_is_another_file_or_none_by_now_may_not(tmp_path: Path, script: Path) -> None:
    files = files_of(tmp_path, "sh", "check.sh")
    script.write_text("exit 1")
    assert differing(tmp_path, files, "sh", "check.sh") == f"{script}"
    script.unlink()
    assert differing(tmp_path, files, "sh", "check.sh") == f"{script}"
    script.write_text("exit 0")
    assert differing(tmp_path, files, "sh", "check.sh") is None


@pytest.mark.parametrize("word", ["missing.sh", "./missing", "{{missing.sh}}"])
def test_nor_may_what_was_no_file_and_is_one_by_now(tmp_path: Path, word: str) -> None:
    """Whoever writes it would have planted it."""
    assert files_of(tmp_path, "sh", word) == {}
    path = f"{tmp_path}/{word.replace('{{', '{').replace('}}', '}')}"
    Path(path).write_text("exit 0")
    assert differing(tmp_path, {}, "sh", word) == path


def test_a_word_that_does_not_look_like_a_path_means_no_file_unless_it_was_one(tmp_path: Path) -> None:
    """A file of its name is no reason not to run what was approved; one that was pinned is."""
    assert files_of(tmp_path, "echo", "build") == {}
    (tmp_path / "build").write_text("planted")
    assert differing(tmp_path, {}, "echo", "build") is None
    files = files_of(tmp_path, "sh", "build")
    (tmp_path / "build").write_text("exit 0")
    assert differing(tmp_path, files, "sh", "build") == f"{tmp_path}/build"


def test_a_known_digest_is_not_believed_before_a_run(
    tmp_path: Path, script: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two changes within one tick of the clock look like one."""
    files = files_of(tmp_path, "sh", "check.sh")
    monkeypatch.setattr(contents, "_state", lambda _: (0,))
    monkeypatch.setattr(contents, "_digests", {(0,): digest(b"exit 0")})
    script.write_text("exit 1")
    assert files_of(tmp_path, "sh", "check.sh") == files
    assert differing(tmp_path, files, "sh", "check.sh") == f"{script}"


# ── what is not pinned ────────────────────────────────────────────────────────────────────────────


def test_what_is_not_pinned_is_said(tmp_path: Path, script: Path) -> None:
    (tmp_path / "tests").mkdir()
    assert loose(tmp_path, "python3", "check.sh", "{path}", "-q", "--rules=/etc/rules", "tests", "word") == (
        "python3, which is found on the PATH",
        "{path}, which is another one each time",
        "what the option --rules=/etc/rules names",
        f"{tmp_path}/tests, which is a directory",
    )
    assert loose(tmp_path, f"{script}", "check.sh", "--level=3", "--rules=rules") == ()
    (tmp_path / "rules").touch()
    assert loose(tmp_path, f"{script}", "--rules=rules") == ("what the option --rules=rules names",)
    assert not_pinned(CommandSpec(argv=("openclaw", "stop", "{session}"))) == (
        IN_TURN,
        "openclaw, which is found on the PATH",
        "{session}, which is another one each time",
    )


# ── schemas ───────────────────────────────────────────────────────────────────────────────────────


def schema(path: Path) -> str | None:
    return with_contents(WorkflowSpec(schema=str(path))).schema_text


def test_a_schema_is_pinned_as_a_text(tmp_path: Path) -> None:
    path = tmp_path / "schema.json"
    path.write_bytes(b'\xef\xbb\xbf{"title": "caf\xc3\xa9"}')
    assert schema(path) == '{"title": "café"}'


@pytest.mark.parametrize(
    "content",
    [None, b"\xff\xfe{\x00}\x00", b" " * (LARGEST_SCHEMA + 1)],
    ids=["missing", "no UTF-8", "too large"],
)
def test_a_schema_that_cannot_be_pinned_is_said(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "schema.json"
    if content is not None:
        path.write_bytes(content)
    spec = with_contents(WorkflowSpec(schema=str(path)))
    assert spec.schema_text is None
    assert not_pinned(spec) == (f"{path}, which cannot be read as a text of at most 250,000 bytes",)
    assert not_pinned(msgspec.structs.replace(spec, schema_text="{}")) == ()

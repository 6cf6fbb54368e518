"""The mark that some editors and shells begin a text with belongs to no line."""

from pathlib import Path

import pytest

from jobs.ports import Cursor
from jobs.sources.gateway import FORMAT
from tests.fakes import NOON

MARK = b"\xef\xbb\xbf"
LINE = b'{"ts":1767225600,"agentId":"main","tool":"exec","args":{}}\n'


@pytest.mark.parametrize("step", [1, 7, 1 << 20])
def test_a_first_line_behind_it_is_read_however_it_grows(step: int, tmp_path: Path) -> None:
    """And nowhere else: in the midst of a log it is what it is, a mistake."""
    log, content = tmp_path / "calls.jsonl", MARK + LINE + LINE + MARK + LINE
    source, cursors, calls = FORMAT(name="a", pattern=str(log)), dict[str, Cursor](), 0
    for end in range(step, len(content) + step, step):
        with log.open("ab") as file:
            file.write(content[end - step : end])
        for batch in source.read_new(cursors, NOON):
            cursors[batch.path] = batch.cursor
            calls += len(batch.calls)
    assert (calls, cursors[str(log)].unreadable, cursors[str(log)].offset) == (2, 1, len(content))


def test_alone_it_is_an_empty_log(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"
    log.write_bytes(MARK)
    (batch,) = FORMAT(name="a", pattern=str(log)).read_new({}, NOON)
    assert (batch.calls, batch.cursor.unreadable) == ([], 0)

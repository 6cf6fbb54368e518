"""`POST /runs/NAME`: who knows the secret says that a run has ended, and that is a row before it is answered."""

import asyncio
import json
import os
import resource
import socket
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, closing, suppress
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, Final

import psutil
import pytest
from aiohttp import ClientError, ClientSession
from hypothesis import given
from hypothesis import strategies as st
from pydantic import SecretStr

from bot.app import open_app
from bot.console import ConsoleSession
from bot.reported import Reported, ReportError, reported_in
from bot.reporting import HOST, Reporting, taking_reports
from bot.settings import SettingsError
from jobs.alert.outgoing import Notice
from jobs.ports import Watched
from jobs.store.database import Database, open_database
from jobs.store.schema import FILE_NAME
from jobs.verification.history import Report, Trigger
from jobs.verification.spec import WorkflowSpec
from jobs.verification.verdict import Outcome
from tests.bot.room import settings_for
from tests.fakes import NOON, HandClock

SECRET: Final = "open-sesame"
POST: Final = (Path(__file__).parents[1] / "data/openclaw/cron_post.json").read_bytes()
MEBIBYTE: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class TwoWorkflows:
    """A watch list."""

    def sources(self) -> Mapping[str, Watched]:
        return {}

    def workflows(self) -> Mapping[str, WorkflowSpec]:
        return {name: WorkflowSpec(name=name) for name in ("nightly", "ünusual/näme")}

    def refresh(self) -> Notice | None:
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reporter:
    """A program that reports over HTTP."""

    port: int
    store: Database
    session: ClientSession

    async def post(
        self,
        body: object = b"",
        *,
        path: str = "/runs/nightly",
        secret: str | None = SECRET,
        method: str = "POST",
    ) -> tuple[int, Any]:
        """Return the status and the answer."""
        data = body if isinstance(body, AsyncIterator) else BytesIO(_bytes(body))
        headers = {} if secret is None else {"Authorization": f"Bearer {secret}"}
        url = f"http://{HOST}:{self.port}{path}"
        async with self.session.request(method, url, data=data, headers=headers) as answer:
            return answer.status, await answer.json()

    async def raw(self, request: bytes) -> bytes:
        """Send bytes and return what comes back until the server hangs up."""
        reader, writer = await asyncio.open_connection(HOST, self.port)
        writer.write(request)
        try:
            return await reader.read()
        finally:
            writer.close()
            await writer.wait_closed()

    async def reports(self) -> list[Report]:
        return list(await self.store.reading.reports.waiting())


def _bytes(body: object) -> bytes:
    return body if isinstance(body, bytes) else json.dumps(body).encode()


@asynccontextmanager
async def listening(folder: Path, patience: float = 60) -> AsyncIterator[Reporter]:
    async with AsyncExitStack() as stack:
        store = await stack.enter_async_context(open_database(folder))
        reporting = Reporting(
            store=store, watch=TwoWorkflows(), clock=HandClock(NOON), secret=SECRET, patience=patience
        )
        port = await stack.enter_async_context(reporting.listening(0))
        session = await stack.enter_async_context(ClientSession())
        yield Reporter(port=port, store=store, session=session)


@pytest.fixture
async def reporter(tmp_path: Path) -> AsyncIterator[Reporter]:
    async with listening(tmp_path) as reporter:
        yield reporter


def a_report(report_id: int = 1, **fields: Any) -> Report:
    return Report(id=report_id, **{"workflow": "nightly", "by": Trigger.REPORT, "at": NOON, **fields})


# ── what is taken ─────────────────────────────────────────────────────────────────────────────────


async def test_a_report_is_a_row_before_it_is_answered(reporter: Reporter) -> None:
    assert await reporter.post({"run": "r-7", "said": "all done"}) == (202, {"report": 1})
    assert await reporter.reports() == [a_report(reported="r-7", said="all done")]


async def test_where_very_many_reports_wait_no_further_one_is_taken(reporter: Reporter) -> None:
    async with reporter.store.transaction() as tables:
        for _ in range(1000):
            await tables.reports.add(a_report())
    assert await reporter.post() == (429, {"error": "too many reports wait; try again later"})
    async with reporter.store.transaction() as tables:
        await tables.reports.remove(1)
    assert (await reporter.post())[0] == 202


async def test_a_report_may_say_nothing(reporter: Reporter) -> None:
    """That a run has ended is all that must be known."""
    for body in (b"", b" \n", b"{}"):
        assert (await reporter.post(body))[0] == 202
    assert await reporter.reports() == [a_report(number) for number in (1, 2, 3)]


async def test_what_openclaw_posts_after_a_cron_run_is_understood(reporter: Reporter) -> None:
    assert await reporter.post(POST) == (202, {"report": 1})
    session, summary = (
        "e93ab00c-95cd-421a-9990-7e6741dff29c",
        "Read all 640 lines; three warnings, no errors.",
    )
    assert await reporter.reports() == [a_report(reported=session, said=summary)]


async def test_what_tells_of_no_end_of_a_run_is_no_report(reporter: Reporter) -> None:
    assert await reporter.post(cron(action="started")) == (200, {"report": None})
    assert await reporter.reports() == []


async def test_the_name_may_be_unusual(reporter: Reporter) -> None:
    assert (await reporter.post(path="/runs/%C3%BCnusual%2Fn%C3%A4me"))[0] == 202
    assert await reporter.reports() == [a_report(workflow="ünusual/näme")]


async def test_as_much_as_a_mebibyte_is_taken(reporter: Reporter) -> None:
    body = {"said": "x" * (MEBIBYTE - len('{"said": ""}'))}
    assert (await reporter.post(body))[0] == 202
    [report] = await reporter.reports()
    assert report.said == "x" * 2000


# ── what is not ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("secret", [None, "", "wrong", f"{SECRET}x", SECRET[:-1], "ünïcode"])
@pytest.mark.parametrize("path", ["/runs/nightly", "/runs/unknown", "/else"])
async def test_without_the_secret_nothing_is_told(reporter: Reporter, secret: str | None, path: str) -> None:
    """Not even which workflows there are."""
    status, answer = await reporter.post(path=path, secret=secret)
    assert (status, answer) == (401, {"error": "the secret is missing or wrong"})
    assert await reporter.reports() == []


async def test_another_kind_of_authorization_is_none(reporter: Reporter) -> None:
    request = f"POST /runs/nightly HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {SECRET}\r\nConnection: close\r\n\r\n"
    assert (await reporter.raw(request.encode())).startswith(b"HTTP/1.1 401 ")


async def test_the_secret_is_asked_for_before_the_body_is_read(reporter: Reporter) -> None:
    """A wrong one is answered while the body has not even been sent."""
    reader, writer = await asyncio.open_connection(HOST, reporter.port)
    writer.write(
        b"POST /runs/nightly HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\nContent-Length: 9\r\n\r\n"
    )
    async with asyncio.timeout(10):
        assert await reader.readline() == b"HTTP/1.1 401 Unauthorized\r\n"
    writer.close()
    await writer.wait_closed()


async def test_an_unknown_workflow_is_not_found(reporter: Reporter) -> None:
    assert await reporter.post(path="/runs/unknown") == (404, {"error": "no workflow of that name"})
    assert await reporter.post(path="/else") == (404, {"error": "Not Found"})


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_it_is_only_posted_to(reporter: Reporter, method: str) -> None:
    assert await reporter.post(method=method) == (405, {"error": "Method Not Allowed"})


async def test_more_than_a_mebibyte_is_too_much(reporter: Reporter) -> None:
    """Whether its length is told first or not."""

    async def in_pieces() -> AsyncIterator[bytes]:
        for _ in range(17):
            yield b" " * (MEBIBYTE // 16)

    assert (await reporter.post(b" " * (MEBIBYTE + 1)))[0] == 413
    assert (await reporter.post(in_pieces()))[0] == 413
    assert await reporter.reports() == []


async def test_a_body_that_does_not_come_is_not_waited_for(tmp_path: Path) -> None:
    head = f"POST /runs/nightly HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {SECRET}\r\n"
    async with listening(tmp_path, patience=0.1) as reporter, asyncio.timeout(60):
        answer = await reporter.raw(f"{head}Content-Length: 9\r\n\r\n{{".encode())
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert await reporter.reports() == []


@pytest.mark.parametrize(
    "garbage", [b"\0" * 100, b"POST\r\n\r\n", b"POST /runs/nightly HTTP/1.1\r\nX\r\n\r\n"]
)
async def test_what_is_no_http_is_refused(reporter: Reporter, garbage: bytes) -> None:
    async with asyncio.timeout(30):
        assert (await reporter.raw(garbage)).startswith(b"HTTP/1.0 400 ")


async def test_a_body_that_makes_no_sense_is_told_in_one_line(reporter: Reporter) -> None:
    assert await reporter.post(b"{") == (400, {"error": "the body is not JSON"})


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd"])
async def test_a_compressed_body_is_refused(
    reporter: Reporter, encoding: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a look into it: a little may become very much, or nothing at all."""
    head = f"POST /runs/nightly HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {SECRET}\r\n"
    body = f"Content-Encoding: {encoding}\r\nContent-Length: 7\r\n\r\ngarbage"
    async with asyncio.timeout(30):
        assert (await reporter.raw(f"{head}{body}".encode())).startswith(b"HTTP/1.1 415 ")
    assert not caplog.records


async def test_a_body_that_breaks_off_is_refused(
    reporter: Reporter, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether it is no chunk that comes, or nothing more."""
    head = f"POST /runs/nightly HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {SECRET}\r\n"
    async with asyncio.timeout(30):
        answer = await reporter.raw(f"{head}Transfer-Encoding: chunked\r\n\r\nnonsense\r\n".encode())
        assert b" 400 " in answer
        _, writer = await asyncio.open_connection(HOST, reporter.port)
        writer.write(f"{head}Content-Length: 9\r\n\r\n{{".encode())
        writer.transport.abort()
        await closed(writer)
        assert (await reporter.post())[0] == 202
    assert not [record for record in caplog.records if record.exc_info]


async def test_what_is_no_http_costs_one_line_in_the_log(
    reporter: Reporter, caplog: pytest.LogCaptureFixture
) -> None:
    """However often it comes: a line a minute, and no traceback."""
    async with asyncio.timeout(30):
        for _ in range(5):
            await reporter.raw(b"POST /runs/nightly HTTP/1.1\r\nX\r\n\r\n")
    [line] = caplog.records
    assert line.exc_info is None
    assert line.getMessage().startswith("Error handling request from 127.0.0.1: ")


async def test_each_connection_has_one_request(reporter: Reporter) -> None:
    request = f"POST /runs/nightly HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {SECRET}\r\n\r\n".encode()
    async with asyncio.timeout(30):
        assert (await reporter.raw(2 * request)).count(b"HTTP/1.1 202 ") == 1
    assert len(await reporter.reports()) == 1


async def test_headers_that_do_not_come_are_not_waited_for(tmp_path: Path) -> None:
    async with listening(tmp_path, patience=0.1) as reporter, asyncio.timeout(60):
        assert await reporter.raw(b"POST /runs/nightly HTTP/1.1\r\nX: ") == b""


async def test_only_a_few_connections_are_kept(reporter: Reporter) -> None:
    """So that whoever opens more, with half a request on each, does not use up what guarding needs."""
    before = psutil.Process().num_fds()
    async with asyncio.timeout(60), AsyncExitStack() as stack:
        ends = []
        for _ in range(100):
            reader, writer = await asyncio.open_connection(HOST, reporter.port)
            stack.push_async_callback(closed, writer)
            writer.write(b"POST /runs/nightly HTTP/1.1\r\nX: ")
            ends.append(asyncio.ensure_future(reader.read()))
        gone = 0
        while gone < 100 - 32:
            await asyncio.wait(ends[gone:], return_when=asyncio.FIRST_COMPLETED)
            gone = sum(end.done() for end in ends)
        # Each of those is open at both ends, in this process.
        assert psutil.Process().num_fds() - before <= 100 + 32 + 1
    async with asyncio.timeout(60):
        while await tried(reporter) != 202:
            pass


async def closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(ConnectionError):
        await writer.wait_closed()


async def tried(reporter: Reporter) -> int | None:
    try:
        return (await reporter.post())[0]
    except ClientError:
        return None


async def test_without_descriptors_it_says_so_once(
    reporter: Reporter, caplog: pytest.LogCaptureFixture
) -> None:
    """And takes connections again when there are some."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    other = socket.socket()
    other.setblocking(False)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (other.fileno() + 1, hard))
        async with asyncio.timeout(30):
            await asyncio.get_running_loop().sock_connect(other, (HOST, reporter.port))
            while not caplog.records:  # noqa: ASYNC110 - a log sets no event
                await asyncio.sleep(0)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        other.close()
    assert (await reporter.post())[0] == 202
    assert [record.getMessage() for record in caplog.records] == [
        "no connection can be taken: Too many open files"
    ]


# ── trouble ───────────────────────────────────────────────────────────────────────────────────────


async def test_a_report_that_cannot_be_kept_is_not_promised(tmp_path: Path) -> None:
    """While another program holds the file, and later while it is done without: the reporter is to try again."""
    async with listening(tmp_path) as reporter:
        with closing(sqlite3.connect(tmp_path / FILE_NAME, isolation_level=None)) as other:
            other.execute("BEGIN EXCLUSIVE")
            await reporter.store._opened.writer.execute("PRAGMA busy_timeout = 10")
            status, answer = await reporter.post({"run": "a"})
            assert (status, answer["error"]) == (503, "the report could not be kept; try again later")
            status, answer = await reporter.post({"run": "b"})
            assert (status, answer["error"]) == (503, "the report is kept in memory only; try again later")
            assert [report.reported for report in await reporter.reports()] == ["b"]
            other.execute("ROLLBACK")
        assert await reporter.store.recover()
        assert await reporter.post({"run": "a"}) == (202, {"report": 2})
        assert [report.reported for report in await reporter.reports()] == ["b", "a"]


async def test_a_fault_of_its_own_is_told_and_logged(
    reporter: Reporter, caplog: pytest.LogCaptureFixture
) -> None:
    async with reporter.store.transaction() as tables:
        await tables.connection.execute("ALTER TABLE report RENAME TO gone")
    assert (await reporter.post())[0] == 503
    assert "a report of workflow nightly could not be kept" in caplog.text
    assert reporter.store.trouble is None


# ── the bot ───────────────────────────────────────────────────────────────────────────────────────


async def test_it_is_off_unless_the_settings_say_so(tmp_path: Path) -> None:
    settings, clock = settings_for(tmp_path), HandClock(NOON)
    async with open_database(tmp_path) as store, taking_reports(settings, store, TwoWorkflows(), clock):
        connections = psutil.Process().net_connections("tcp")
        assert psutil.CONN_LISTEN not in {connection.status for connection in connections}


async def test_the_bot_takes_reports_while_it_runs(tmp_path: Path) -> None:
    """And a port that is taken keeps it from starting, with the name of the setting."""
    (tmp_path / "loopwarden.toml").write_text('[workflows.nightly]\noutput = "out.json"\n')
    async with listening(tmp_path / "other") as other:
        settings = settings_for(tmp_path).model_copy(
            update={"report_port": other.port, "report_secret": SecretStr(SECRET)}
        )
        console = ConsoleSession(lambda _: None, HandClock(NOON))
        with pytest.raises(SettingsError, match=r"LOOPWARDEN_REPORT_PORT: port \d+ cannot be listened on: "):
            async with open_app(settings, session=console, clock=HandClock(NOON)):
                pass
    async with open_app(settings, session=console, clock=HandClock(NOON)) as app, ClientSession() as session:
        reporter = Reporter(port=other.port, store=app.handling.desk.store, session=session)
        assert await reporter.post() == (202, {"report": 1})
        assert len(await reporter.reports()) == 1


async def test_the_same_run_reported_twice_is_verified_once(tmp_path: Path) -> None:
    """At once, or when it has its verdict already."""
    (tmp_path / "loopwarden.toml").write_text('[workflows.nightly]\noutput = "out.txt"\nformat = "text"\n')
    (tmp_path / "out.txt").write_text("done")
    os.utime(tmp_path / "out.txt", (NOON, NOON))
    settings = settings_for(tmp_path).model_copy(
        update={"report_port": free_port(), "report_secret": SecretStr(SECRET)}
    )
    console = ConsoleSession(lambda _: None, HandClock(NOON))
    async with open_app(settings, session=console, clock=HandClock(NOON)) as app, ClientSession() as session:
        desk = app.handling.desk
        reporter = Reporter(port=settings.report_port or 0, store=desk.store, session=session)
        for posts in (2, 1):
            for _ in range(posts):
                assert (await reporter.post(POST))[0] == 202
            while await desk.verification() is not None:
                pass
        [verdict] = await desk.store.reading.verdicts.page(None, None, None, 10)
        assert (verdict.by, verdict.outcome) == (Trigger.REPORT, Outcome.PASS)
        assert await reporter.reports() == []


def free_port() -> int:
    with socket.socket() as free:
        free.bind((HOST, 0))
        port: int = free.getsockname()[1]
        return port


# ── what a body says ──────────────────────────────────────────────────────────────────────────────


def cron(**changes: object) -> bytes:
    return json.dumps({**json.loads(POST), **changes}).encode()


@pytest.mark.parametrize(
    ("body", "reported"),
    [
        (b'{"run": 7}', Reported(run="7")),
        (b'{"run": null, "said": ""}', Reported()),
        ('{"said": "erledigt ✓"}'.encode(), Reported(said="erledigt ✓")),
        (b'{"run": "' + b"x" * 200 + b'"}', Reported(run="x" * 200)),
        (
            cron(sessionId=None, summary=None),
            Reported(run="8f5f2a8b-3f87-4b4c-94d3-8a0a706774cb-1796029238013"),
        ),
        (
            cron(sessionId="s", status="error", error="timed out", summary="x"),
            Reported(run="s", said="status error; timed out; x"),
        ),
        (b'{"jobId": "j", "action": "finished"}', Reported()),
        (cron(action="started"), None),
        (cron(status="skipped"), None),
    ],
)
def test_a_body_says_which_run_and_what_its_reporter_makes_of_it(
    body: bytes, reported: Reported | None
) -> None:
    assert reported_in(body) == reported


BAD_RUN: Final = 'run: must not hold "/", ".." or what cannot be printed'


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"[]", "the body is no JSON object"),
        (b'"x"', "the body is no JSON object"),
        (b"{]", "the body is not JSON"),
        (b"\xff", "the body is not JSON"),
        (b"{} {}", "the body is not JSON"),
        (b'{"x":' * 100_000, "the body is not JSON"),
        (b'{"said": "\\ud800"}', "the body is not JSON"),
        (b'{"runs": "x"}', "unknown field; known: run, said"),
        (b'{"said": 1}', "said: expected str | null, got int"),
        (b'{"run": []}', "run: expected int | str | null, got array"),
        (b'{"run": ""}', "run: must be from 1 to 200 characters"),
        (b'{"run": "' + b"x" * 201 + b'"}', "run: must be from 1 to 200 characters"),
        (b'{"run": "../../etc/passwd"}', BAD_RUN),
        (b'{"run": "a/b"}', BAD_RUN),
        (b'{"run": ".."}', BAD_RUN),
        (b'{"run": "a\\u0000b"}', BAD_RUN),
        (b'{"run": "a\\nb"}', BAD_RUN),
        (cron(sessionId="a/b"), BAD_RUN),
        (cron(action=None), "action: expected str, got null"),
    ],
)
def test_a_body_that_makes_no_sense_is_an_error(body: bytes, message: str) -> None:
    with pytest.raises(ReportError) as caught:
        reported_in(body)
    assert str(caught.value) == message


JSON: Final = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()),
    lambda inner: (
        st.lists(inner) | st.dictionaries(st.sampled_from([*json.loads(POST), "run", "said"]), inner)
    ),
)


@given(st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_whatever_a_body_is_it_says_something_or_is_an_error(body: bytes) -> None:
    """Of one line; and an id that it gives is one that may become a part of a file's name."""
    try:
        reported = reported_in(body)
    except ReportError as error:
        assert "\n" not in str(error)  # noqa: PT017 - what makes sense raises nothing
        return
    run = reported.run if reported else None
    assert run is None or ("/" not in run and ".." not in run and run.isprintable())

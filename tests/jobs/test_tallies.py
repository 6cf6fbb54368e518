"""What a scan counts of a session beside its calls: errors, tokens and money, each told once, none lost."""

import tempfile
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.alert.notice import IncidentNotice, StopNotice
from jobs.ports import Batch, CallSource, Cursor, Watched
from jobs.retention import Retention
from jobs.sources.registry import build_source
from jobs.store.database import Database, open_database
from jobs.thrash.call import Answer, LoggedCall, Usage
from jobs.thrash.policy import OnDetection
from jobs.thrash.price import NO_PRICES, UNIT, Price, Prices, money_of, plus
from jobs.thrash.session import Session
from jobs.watchlist.sources import SourceSpec
from tests.fakes import NOON, HandClock, call
from tests.jobs.world import World
from tests.sources.contract import SHARED, Told, parts, read_at_once
from tests.sources.databases import OpenClaw, OpenCode, Row, in_parts, rows_of

AGENTS = SHARED / "agents"
with_real_logs = pytest.mark.skipif(not AGENTS.exists(), reason="real logs are not part of a clone")
PRICES = Prices(models={"*": Price(input=3, output=15, cached=0.3)})
DAY = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """What a batch holds."""

    calls: Sequence[LoggedCall] = ()
    answers: Sequence[Answer] = ()
    usages: Sequence[Usage] = ()
    size: int = 0


@dataclass(slots=True, kw_only=True)
class Pieces(CallSource):
    """A log in memory, whose cursor counts batches."""

    name: str = "gateway"
    pieces: list[Piece] = field(default_factory=list)
    breaks_at: int | None = None

    def read_new(self, cursors: Mapping[str, Cursor], now: float) -> Iterator[Batch]:
        start = cursors["log"].offset if "log" in cursors else 0
        for offset, piece in enumerate(self.pieces[start:], start + 1):
            if offset == self.breaks_at:
                raise OSError("the disk went away")
            cursor = Cursor(device=1, inode=1, offset=offset, head="", tail="", read_at=now)
            yield Batch(
                path="log",
                cursor=cursor,
                calls=piece.calls,
                answers=piece.answers,
                usages=piece.usages,
                size=piece.size,
            )

    def problems(self) -> Sequence[str]:
        return ()


def used(
    tokens: int = 1_000_000,
    *,
    ts: float = NOON,
    session: str = "s-1",
    model: str | None = "gpt-6",
    has_call: bool = False,
) -> Usage:
    return Usage(session=session, ts=ts, model=model, input=tokens, output=0, cached=0, has_call=has_call)


def world_of(
    store: Database, source: CallSource, *, prices: Prices = PRICES, clock: HandClock | None = None
) -> World:
    world = World(store=store, clock=clock or HandClock())
    watch(world, source, prices)
    return world


def watch(world: World, source: CallSource, prices: Prices) -> None:
    world.watch.watched = [
        Watched(source=source, killer=world.killer, on_detection=OnDetection.STOP, prices=prices)
    ]


# ── money ─────────────────────────────────────────────────────────────────────────────────────────


async def test_an_alert_and_a_stop_tell_money_beside_tokens(store: Database) -> None:
    """The incident's is what came from its first call on."""
    source = Pieces(pieces=[Piece(calls=[call(NOON - 300, "a" * 20)], usages=[used()])])
    world = world_of(store, source)
    await world.look()
    heard = []
    for _ in range(3):
        now = world.clock.now()
        circles = [call(now - 9 + n, session="s-1") for n in range(10)]
        source.pieces.append(Piece(calls=circles, usages=[used(2_000_000, ts=now)]))
        await world.look()
        heard += [message.notice for message in await world.hear()]
    await world.agent_stop()
    heard += [message.notice for message in await world.hear()]
    alerts = [notice.incident for notice in heard if isinstance(notice, IncidentNotice)]
    assert (alerts[0].cost, alerts[0].currency) == (6 * UNIT, "USD")
    (stop,) = [notice for notice in heard if isinstance(notice, StopNotice)]
    assert stop.incident is not None
    assert (stop.incident.cost, stop.incident.cost_before) == (18 * UNIT, 3 * UNIT)
    assert (await world.session()).memory.cost == 21 * UNIT


async def test_a_changed_price_counts_from_then_on(store: Database) -> None:
    source = Pieces(pieces=[Piece(calls=[call()], usages=[used()])])
    world = world_of(store, source, prices=NO_PRICES)
    await world.look()
    assert ((await world.session()).memory.cost, (await world.session()).memory.tokens) == (None, 1_000_000)
    for price in (2, 5):
        watch(world, source, Prices(models={"gpt-*": Price(input=price, output=1)}, currency="EUR"))
        source.pieces.append(Piece(usages=[used()]))
        await world.look()
    assert ((await world.session()).memory.cost, (await world.session()).currency) == (7 * UNIT, "EUR")


async def test_money_is_counted_of_answers_with_and_without_a_call(store: Database) -> None:
    """Tokens of an answer with a call are told with the call, its money is not."""
    usages = [used(has_call=True), used(), used(model="?", has_call=True)]
    source = Pieces(pieces=[Piece(calls=[call(tokens=2_000_000)], usages=usages)])
    world = world_of(store, source, prices=Prices(models={"gpt-*": Price(input=3, output=15)}))
    await world.look()
    session = await world.session()
    assert (session.memory.cost, session.memory.tokens) == (6 * UNIT, 3_000_000)


# ── before the first call ─────────────────────────────────────────────────────────────────────────


async def test_what_was_used_before_the_first_call_is_kept_but_not_shown(store: Database) -> None:
    """Some programs write an answer before the calls in it, and a look may come between."""
    source = Pieces(pieces=[Piece(usages=[used()])])
    world = world_of(store, source)
    await world.look()
    tables = store.reading
    assert await tables.sessions.newest(1, 9) == []
    assert await tables.sessions.counts(1) == {}
    assert await tables.sessions.find("s-1", 9) == []
    await Retention(store=store, clock=world.clock, days=90)()
    source.pieces.append(Piece(calls=[call(world.clock.now())]))
    await world.look()
    (session,) = await tables.sessions.find("coder", 9)
    assert (session.memory.tokens, session.memory.cost) == (1_000_000, 3 * UNIT)
    assert (session.first_ts, session.memory.calls) == (NOON + 60, 1)


async def test_a_session_that_never_makes_a_call_goes_when_it_is_old(store: Database) -> None:
    world = world_of(store, Pieces(pieces=[Piece(usages=[used()])]))
    await world.look()
    world.clock.go_on(91 * DAY)
    await Retention(store=store, clock=world.clock, days=90)()
    assert await store.reading.sessions.get(1) is None


async def test_what_was_committed_of_a_look_that_broke_off_is_counted(store: Database) -> None:
    """Of a long log a part is committed at a time, whatever sessions it tells of."""
    long = Piece(usages=[used(session="quiet")], calls=[call()], size=1 << 30)
    source = Pieces(pieces=[long, Piece(calls=[call(session="quiet")])], breaks_at=2)
    world = world_of(store, source)
    with pytest.raises(ExceptionGroup):
        await world.look()
    source.breaks_at = None
    await world.look()
    assert (await world.session("quiet")).memory.tokens == 1_000_000


# ── whatever the looks ────────────────────────────────────────────────────────────────────────────

names = st.sampled_from(["s-1", "s-2"])
pieces = st.builds(
    Piece,
    calls=st.lists(st.builds(call, session=names, is_error=st.booleans()), max_size=2),
    answers=st.lists(
        st.builds(
            Answer,
            session=names,
            call_id=st.just("c"),
            ts=st.just(NOON),
            is_error=st.booleans(),
            digest=st.just(""),
        ),
        max_size=2,
    ),
    usages=st.lists(st.builds(used, st.integers(0, 10**6), session=names), max_size=2),
)


def told_by(found: Sequence[Piece]) -> Told:
    return Told(
        calls=[each for piece in found for each in piece.calls],
        answers=[each for piece in found for each in piece.answers],
        usages=[each for piece in found for each in piece.usages],
    )


@dataclass(frozen=True, slots=True)
class Tally:
    """What is counted of one session."""

    calls: int = 0
    errors: int = 0
    tokens: int = 0
    cost: int = 0


def tally_of(told: Told) -> dict[str, Tally]:
    """By session, with all zeros left out."""
    found: dict[str, Tally] = defaultdict(Tally)
    for each in told.calls:
        found[each.session] = replace(
            was := found[each.session], calls=was.calls + 1, errors=was.errors + each.is_error
        )
    for answer in told.answers:
        found[answer.session] = replace(was := found[answer.session], errors=was.errors + answer.is_error)
    for usage in told.usages:
        money = money_of(usage, PRICES) or 0
        found[usage.session] = replace(
            was := found[usage.session], tokens=was.tokens + usage.tokens, cost=was.cost + money
        )
    return {name: tally for name, tally in found.items() if tally != Tally()}


def tally(session: Session) -> Tally:
    memory = session.memory
    return Tally(memory.calls, session.errors, memory.tokens or 0, memory.cost or 0)


async def tallies(store: Database, source: CallSource, told: Told) -> dict[str, Tally]:
    sessions = await store.reading.sessions.of_source(source.name, sorted(tally_of(told)))
    return {name: tally(session) for name, session in sessions.items()}


@settings(max_examples=25)
@given(drawn=st.lists(pieces, max_size=6), cuts=st.sets(st.integers(0, 6)))
async def test_errors_tokens_and_money_do_not_depend_on_when_one_looks(
    drawn: list[Piece], cuts: set[int]
) -> None:
    """Each look is of a bot that has just started."""
    source = Pieces()
    with tempfile.TemporaryDirectory() as folder:
        for end in (*sorted(cuts), len(drawn)):
            source.pieces = drawn[:end]
            async with open_database(Path(folder)) as store:
                await world_of(store, source).look()
        async with open_database(Path(folder)) as store:
            assert await tallies(store, source, told_by(drawn)) == tally_of(told_by(drawn))


# ── logs that real programs have written ──────────────────────────────────────────────────────────


@asynccontextmanager
async def looking(folder: Path, spec: SourceSpec, clock: HandClock) -> AsyncIterator[World]:
    """A bot that has just started."""
    async with open_database(folder / "data") as store:
        yield world_of(store, build_source(spec), clock=clock)


async def assert_counted(folder: Path, spec: SourceSpec, told: Told) -> None:
    source = build_source(spec)
    async with open_database(folder / "data") as store:
        assert await tallies(store, source, told) == tally_of(told)
    assert reduce(plus, (money_of(usage, PRICES) for usage in told.usages), None)


FILES = {
    "claude-code": ("agents/claude/.claude/projects", "**/*.jsonl"),
    "codex": ("agents/codex/.codex/sessions", "**/*.jsonl"),
    "gemini-cli": ("agents/gemini/.gemini/tmp", "**/*.jsonl"),
    "openclaw": ("openclaw/transcripts", "*.jsonl"),
}
cut_anywhere = st.lists(st.floats(0, 1), min_size=1, max_size=3)


@with_real_logs
@pytest.mark.prove
@pytest.mark.parametrize("name", FILES)
@settings(max_examples=15)
@given(cuts=cut_anywhere)
async def test_real_logs_are_counted_in_full_wherever_they_are_cut(name: str, cuts: list[float]) -> None:
    await count_growing(name, cuts)


@with_real_logs
@pytest.mark.parametrize("name", FILES)
async def test_real_logs_are_counted_in_full(name: str) -> None:
    await count_growing(name, [0.2, 0.51, 0.9])


async def count_growing(name: str, cuts: list[float]) -> None:
    """Grown as their program writes them, the bot started anew for each look."""
    home, pattern = FILES[name]
    told = read_at_once(name, SHARED / home / pattern)
    with tempfile.TemporaryDirectory() as text:
        folder = Path(text)
        spec = SourceSpec(name="gateway", format=name, path=str(folder / "logs" / pattern))
        files = {
            folder / "logs" / path.relative_to(SHARED / home): path.read_bytes()
            for path in (SHARED / home).rglob("*")
            if path.is_file()
        }
        clock = HandClock()
        for part in parts(files, cuts):
            for path, content in part.items():
                path.parent.mkdir(parents=True, exist_ok=True)
                with path.open("ab") as file:
                    file.write(content)
            async with looking(folder, spec, clock) as world:
                await world.look()
        await assert_counted(folder, spec, told)


def opencode(folder: Path) -> tuple[OpenCode, list[Row]]:
    real = AGENTS / "opencode/.local/share/opencode/opencode.db"
    writer = OpenCode(folder / "opencode.db")
    for values in rows_of(real, "SELECT id, parent_id, directory, title FROM session"):
        writer.run("INSERT INTO session VALUES (?, ?, ?, ?, 0)", *values)
    found = rows_of(real, "SELECT aggregate_id, seq, data, type FROM event ORDER BY id")
    return writer, [
        Row(str(name), int(str(seq)), str(data).encode(), 1796031441000 + number, str(kind))
        for number, (name, seq, data, kind) in enumerate(found)
    ]


def openclaw(folder: Path) -> tuple[OpenClaw, list[Row]]:
    writer = OpenClaw(folder / "agents/main/agent/openclaw-agent.sqlite")
    rows = []
    for number, path in enumerate(sorted((SHARED / "openclaw/transcripts").glob("*.jsonl"))):
        writer.session(f"s-{number}", f"agent:main:{number}")
        rows += [
            Row(f"s-{number}", seq, line, 1796028000000 + seq)
            for seq, line in enumerate(path.read_bytes().splitlines())
        ]
    return writer, sorted(rows, key=lambda row: row.seq)


@with_real_logs
@pytest.mark.parametrize(("name", "begin"), [("opencode", opencode), ("openclaw", openclaw)])
async def test_real_databases_are_counted_in_full(
    name: str, begin: Callable[[Path], tuple[OpenCode | OpenClaw, list[Row]]], tmp_path: Path
) -> None:
    """As their programs write them, a row at a time, the bot started anew for each look."""
    writer, rows = begin(tmp_path)
    spec = SourceSpec(name="gateway", format=name, path=str(writer.path))
    clock = HandClock()
    for part in in_parts(rows, [0.13, 0.2, 0.51, 0.9]):
        for row in part:
            writer.add(row)
        async with looking(tmp_path, spec, clock) as world:
            await world.look()
    writer.close()
    await assert_counted(tmp_path, spec, read_at_once(name, writer.path))

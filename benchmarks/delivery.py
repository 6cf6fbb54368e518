"""How soon a message leaves, and how fast many do: the whole bot, and a Bot API server with Telegram's limits.

- Milliseconds from the row of an alert, just before it is committed, to the arrival of its request, while the chat
  is idle, over 50 alerts: wanted <= 300 (the one figure here that is no ratio).
- Seconds until 200 messages for 5 private chats, and beside them 200 for 5 groups, have arrived, over those that the
  limits demand: wanted <= 1.1.
"""

import asyncio
import random
import statistics
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from pydantic import HttpUrl, SecretStr

from benchmarks.rounds import report
from bot.app import App, open_app
from bot.settings import Settings, ThrashSettings
from jobs.alert.notice import JobFailedNotice
from jobs.alert.outgoing import Outgoing
from tests.botapi import TOKEN, USER, BotApi, FloodLimits

_ALERTS: Final = 50
_LONGEST_PAUSE: Final = 0.2
"""Seconds between two alerts, so that they meet the bot at any point of its beats."""
_IDLE: Final = range(2_001, 2_001 + _ALERTS)
_PRIVATE: Final = range(3_001, 3_006)
_GROUPS: Final = range(-1_000_000_004_005, -1_000_000_004_000)
_EACH: Final = 40
"""Messages for every busy chat."""
_PATIENCE: Final = 300
_WATCHLIST: Final = '[[sources]]\nname = "gateway"\nformat = "gateway"\npath = "calls.jsonl"\n'


@asynccontextmanager
async def _running(api: BotApi, folder: Path) -> AsyncIterator[App]:
    (folder / "loopwarden.toml").write_text(_WATCHLIST)
    settings = Settings.model_construct(
        token=SecretStr(TOKEN),
        telegram_api=HttpUrl(api.url),
        admins=(USER,),
        chat=None,
        data_dir=folder / "data",
        watchlist=folder / "loopwarden.toml",
        tz="UTC",
        thrash=ThrashSettings(),
    )
    async with open_app(settings) as app:
        stop = asyncio.Event()
        running = asyncio.ensure_future(app.run(stop))
        try:
            await api.until(lambda: api.calls("getUpdates"), timeout=_PATIENCE)
            yield app
        finally:
            stop.set()
            await running


async def _tell(app: App, chats: Sequence[int]) -> float:
    """Queue a message for each of the chats; return when, on the clock of the event loop."""
    body = msgspec.json.encode(JobFailedNotice(job="thrash_scan", error="OSError: No space left on device"))
    async with app.delivery.store.transaction() as tables:
        for chat in chats:
            outgoing = Outgoing(kind="notice", body=body, chat=f"{chat}")
            await tables.outbox.put(outgoing, app.delivery.clock.now())
        return asyncio.get_running_loop().time()


async def _latency(api: BotApi, app: App, chat: int) -> float:
    """Milliseconds until an alert has left."""
    await asyncio.sleep(random.uniform(0, _LONGEST_PAUSE))
    told_at = await _tell(app, [chat])
    await api.until(lambda: api.accepted(chat), timeout=_PATIENCE)
    [call] = [call for call in api.calls("sendMessage") if call.params["chat_id"] == chat]
    return 1000 * (call.at - told_at)


async def _ratios(api: BotApi, app: App) -> list[float]:
    """Time over that of the ideal schedule, of the private chats and of the groups."""
    told_at = await _tell(app, [*_PRIVATE, *_GROUPS] * _EACH)
    ratios = []
    for chats in (_PRIVATE, _GROUPS):
        await api.until(partial(_has_heard_all, api, chats), timeout=_PATIENCE)
        ended_at = max(api.accepted(chat)[-1] for chat in chats)
        ratios.append((ended_at - told_at) / _ideal(FloodLimits(), chats[0]))
    return ratios


def _has_heard_all(api: BotApi, chats: Sequence[int]) -> bool:
    return all(len(api.accepted(chat)) == _EACH for chat in chats)


def _ideal(limits: FloodLimits, chat: int) -> float:
    """Seconds until the last message may arrive if the first one does at once."""
    sent = [0.0]
    while len(sent) < _EACH:
        sent.append(sent[-1] + limits.wait(chat, sent, sent[-1]))
    return sent[-1]


async def _main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with BotApi(chats=[USER, *_IDLE, *_PRIVATE, *_GROUPS]) as api:
            api.flood = FloodLimits(tolerance=0)
            async with _running(api, Path(folder)) as app:
                taken = [await _latency(api, app, chat) for chat in _IDLE]
                private, groups = await _ratios(api, app)
    report(
        "ms from the row of an alert to its request, the chat idle: median",
        statistics.median(taken),
        "<= 300",
    )
    report("the same: 95 of 100", statistics.quantiles(taken, n=20)[-1], "<= 300")
    report("the same: longest", max(taken), "<= 300")
    report("200 messages for 5 private chats: seconds / those that the limits demand", private, "<= 1.10")
    report("200 messages for 5 groups: the same", groups, "<= 1.10")


if __name__ == "__main__":
    asyncio.run(_main())

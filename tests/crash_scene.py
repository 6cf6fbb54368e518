"""What a bot dies amid: an agent that it knows, an order to stop that, and people who go on asking.

The question is asked in the admin's own chat and the report goes to the group, so that neither waits for the other.
"""

import asyncio
import random
import signal
import sqlite3
import time
from dataclasses import dataclass, field
from typing import Any

from jobs.alert.outgoing import Mode, Outgoing
from jobs.ports import Confirmation
from jobs.store.database import open_database
from jobs.store.schema import FILE_NAME
from jobs.thrash.locality import NOTHING_SEEN
from jobs.thrash.session import Session
from jobs.thrash.streak import Streak
from tests.botapi import GROUP, USER, BotApi, Message
from tests.crashing import Crash
from tests.pinned import pinned
from tests.stage import PATIENCE, PROCESS_KILLER, SOURCE, Stage, ending_of

NONCE = "one-time"
LONG = 3600
"""Seconds."""


class Database:
    """What the bot has written, as another process sees it."""

    UNHANDLED = "SELECT id FROM inbox WHERE state = 'waiting'"
    UNSTOPPED = "SELECT id FROM stop WHERE state = 'intended'"
    UNSENT = "SELECT id FROM outbox WHERE state IN ('queued', 'sending')"

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.folder = stage.folder / "data"

    def __call__(self, sql: str) -> list[tuple[Any, ...]]:
        connection = sqlite3.connect(f"file:{self.folder / FILE_NAME}?mode=ro", uri=True)
        try:
            return connection.execute(sql).fetchall()
        finally:
            connection.close()

    async def handled(self) -> None:
        """Wait until the bot has fetched and handled all that there is."""
        await self._stage.api.until(lambda: not self._stage.api.pending, timeout=PATIENCE)
        await self._none(self.UNHANDLED)

    async def settled(self) -> None:
        """Wait until the bot has carried out and sent all that followed from it, too."""
        await self.handled()
        await self._none(f"{self.UNHANDLED} UNION ALL {self.UNSTOPPED} UNION ALL {self.UNSENT}")

    async def _none(self, sql: str) -> None:
        async with asyncio.timeout(PATIENCE):
            # There is no event to wait for.
            while self(sql):  # noqa: ASYNC110
                await asyncio.sleep(0.02)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """An agent that the bot knows, and a bot that dies."""

    stage: Stage
    database: Database
    agent: asyncio.subprocess.Process
    name: str

    async def dies(self, crash: Crash) -> None:
        bot = await self.stage.doomed_bot(crash)
        assert await bot.exit_code(PATIENCE) == -signal.SIGKILL

    async def goes_on(self) -> None:
        """Start the bot again and let it do all that there is to do."""
        await self.stage.bot()
        await self.database.settled()

    async def is_over(self, *, reports: int = 1) -> None:
        """The agent was stopped once, and the chats tell it: the group not more often than that."""
        assert await ending_of(self.agent) == -signal.SIGTERM
        stops = self.database("SELECT outcome, ordered_by FROM stop")
        assert stops == [("stopped", USER)]
        question, *others = said_in(self.stage, USER)
        assert "The stop was ordered" in question.text
        assert (question.edits, others) == (1, [])
        told = said_in(self.stage, GROUP)
        assert 1 <= len(told) <= reports
        for report in told:
            assert f"process {self.agent.pid} has" in report.text
            assert f"Ordered by user {USER}" in report.text
        assert self.database("SELECT DISTINCT state FROM outbox") == [("sent",)]
        assert self.database("SELECT DISTINCT state FROM inbox") == [("handled",)]


def said_in(stage: Stage, chat: int) -> list[Message]:
    return [message for message in stage.api.messages if message.chat == chat]


async def known(stage: Stage, name: str = "busy") -> Scene:
    """Have an agent that the bot has seen."""
    stage.watch(SOURCE, PROCESS_KILLER.format(name="stopper", grace=10))
    await pinned(stage.folder)
    agent = await stage.agent(name, "busy")
    now = time.time()  # noqa: TID251 - as the bot would have noted it
    seen = Session(
        id=0,
        source="gateway",
        session=name,
        agent=name,
        parent=None,
        pid=agent.pid,
        pid_since_ts=now,
        first_ts=now,
        last_ts=now,
        seen_at=now,
        errors=0,
        memory=NOTHING_SEEN,
        streak=Streak(),
    )
    scene = Scene(stage=stage, database=Database(stage), agent=agent, name=name)
    async with open_database(scene.database.folder) as store, store.transaction() as tables:
        await tables.sessions.save(seen)
    return scene


async def commanded(stage: Stage) -> Scene:
    """Have /kill said while no bot runs."""
    scene = await known(stage)
    stage.api.say("/kill busy")
    return scene


async def pressed(stage: Stage) -> Scene:
    """Have "Stop it" pressed, under a question that the bot has asked, while no bot runs."""
    scene = await known(stage)
    button = {"text": "Stop it", "callback_data": f"c:{NONCE}:1"}
    shown = {"chat_id": USER, "text": "Stop busy?", "reply_markup": {"inline_keyboard": [[button]]}}
    await stage.api._do_send_message(shown)
    [question] = stage.api.messages
    await note_question(scene, question)
    stage.api.press(question, "Stop it")
    return scene


async def note_question(scene: Scene, question: Message) -> None:
    now = time.time()  # noqa: TID251 - as the bot would have noted it
    [(session_id,)] = scene.database("SELECT id FROM session")
    async with open_database(scene.database.folder) as store, store.transaction() as tables:
        asked = Outgoing(kind="screen", body=b"{}", mode=Mode.REPLY, chat=f"{question.chat}")
        outgoing_id = await tables.outbox.put(asked, now)
        await tables.outbox.mark_sent(outgoing_id, question.id, now)
        confirmation = Confirmation(
            nonce=NONCE,
            session_id=session_id,
            pid=scene.agent.pid,
            user_id=USER,
            chat_id=question.chat,
            outgoing_id=outgoing_id,
            expires_at=now + LONG,
        )
        await tables.confirmations.add(confirmation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """An admin who looks at an agent and has it stopped, each step after a while."""

    scene: Scene
    user: int
    chance: random.Random
    looks: list[Message] = field(default_factory=list)
    """Commands that were said."""

    async def act(self) -> None:
        for _ in range(2):
            self.looks.append(await self._say("/agent"))
        await self._say("/kill")
        await self._api.until(self._question, timeout=PATIENCE)
        while not self._is_ordered():
            await self._press()

    def has_all(self) -> None:
        """Every look has one answer, which is in the chat; the agent's end is reported."""
        said = {message.id for message in said_in(self.scene.stage, self.user)}
        for look in self.looks:
            sql = f"SELECT message FROM outbox WHERE chat = '{self.user}' AND target_message = {look.id}"  # noqa: S608
            [(answer,)] = self.scene.database(sql)
            assert answer in said
        group = said_in(self.scene.stage, GROUP)
        assert any(f"process {self.scene.agent.pid} has" in report.text for report in group)

    @property
    def _api(self) -> BotApi:
        return self.scene.stage.api

    async def _say(self, command: str) -> Message:
        await asyncio.sleep(self.chance.uniform(0, 3))
        return self._api.say(f"{command} {self.scene.name}", user=self.user)

    async def _press(self) -> None:
        """Press the newest question's button; where that was refused, there is something new in the chat."""
        if (question := self._question()) is None:
            return
        before = len(said_in(self.scene.stage, self.user))
        self._api.press(question, "Stop it", user=self.user)

        def is_new() -> bool:
            return self._is_ordered() or len(said_in(self.scene.stage, self.user)) > before

        await self._api.until(is_new, timeout=PATIENCE)

    def _question(self) -> Message | None:
        said = reversed(said_in(self.scene.stage, self.user))
        return next((message for message in said if message.text.startswith("Stop ")), None)

    def _is_ordered(self) -> bool:
        return any("The stop was ordered" in message.text for message in said_in(self.scene.stage, self.user))

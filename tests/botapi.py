"""A Bot API server on the loopback interface: what a bot meets in Telegram, without Telegram.

The bot under test is pointed at `BotApi.url`. The test plays the people in the chat (`say`, `press`,
`inject`), the bad days of the server (`fault`, `drop`, `garble`, `delay`, `hold`) and of the chats (`blocked`,
`migrate`, `deleted_topics`, `flood`); it reads what the chat shows (`messages`, `wait_for`), what was asked
(`journal`) and when the chats were told something (`accepted`). A Bot API method is a coroutine
`_do_<its_name>`.

Refusals are worded as the real server words them, as far as that is known. Texts carry entities: `parse_mode`
is refused. Messages are dated by the wall clock, because the bot measures their age by it.
"""
# ruff: noqa: ASYNC109 - a test states its patience where it waits

import asyncio
import itertools
import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Self, TypeVar

from aiohttp import web

from tests.botapi_faults import BadDays, FloodLimits, Held
from tests.botapi_model import (
    GROUP,
    NOT_MODIFIED,
    SECOND_POLLER,
    TOKEN,
    UPGRADED,
    USER,
    WEBHOOK_ACTIVE,
    Call,
    Json,
    Message,
    Refusal,
    bad_request,
    chat_json,
    command_entities,
    commands_key,
    now,
    person,
    read_buttons,
    read_caption,
    read_params,
    read_photo,
    read_text,
)

__all__ = [
    "GROUP",
    "TOKEN",
    "USER",
    "BotApi",
    "Call",
    "FloodLimits",
    "Held",
    "Json",
    "Message",
    "read_buttons",
    "read_text",
]

T = TypeVar("T")

LONGEST_POLL = 50
"""Seconds; a longer `timeout` is cut."""


class BotApi(BadDays):
    """The server, as an async context manager; it serves while the context is open.

    `token` may be changed at any time: calls with another one are unauthorized. `chats` are those the bot may
    write to; a person who says something opens theirs. `pending` are the updates that no poll has confirmed.
    `about` is laid over what a chat tells of itself, `standing` over the bot's own membership in one. While
    `webhook` is set nobody can poll. The people `blocked` hear nothing from the bot; in `deleted_topics`, pairs of
    chat and thread, nothing can be said. While `flood` has limits they are enforced.
    """

    def __init__(self, *, token: str = TOKEN, chats: Iterable[int] = (USER, GROUP)) -> None:
        super().__init__()
        self.token = token
        self.url = ""
        self.chats = set(chats)
        self.journal: list[Call] = []
        self.pending: list[Json] = []
        self.about: dict[int, Json] = {}
        self.standing: dict[int, Json] = {}
        self.webhook = ""
        self.blocked: set[int] = set()
        self.deleted_topics: set[tuple[int, int]] = set()
        self.flood: FloodLimits | None = None
        names = {"first_name": "Loopwarden", "username": "loopwarden_bot"}
        self._me: Json = {"id": int(token.partition(":")[0]), "is_bot": True} | names
        self._kept: dict[tuple[int, int], Message] = {}
        self._commands: dict[str, list[Json]] = {}
        self._queries: set[str] = set()
        self._upgraded: dict[int, int] = {}
        self._accepted: defaultdict[int, list[float]] = defaultdict(list)
        self._quiet_until: defaultdict[int, float] = defaultdict(float)
        self._message_ids: defaultdict[int, itertools.count[int]] = defaultdict(lambda: itertools.count(1))
        self._update_ids = itertools.count(700_000_001)
        self._query_ids = itertools.count(9_000_000_001)
        self._allowed: list[str] = []
        self._newest_poll = 0
        self._closing = False
        self._change = asyncio.Event()

    async def __aenter__(self) -> Self:
        app = web.Application()
        app.router.add_route("*", "/bot{token}/{method}", self._serve)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closing = True
        self._release_all()
        self._changed()
        await self._runner.cleanup()

    # The test's side: the people in the chat, the bad days, and what there is to see.

    def say(
        self,
        text: str,
        *,
        user: int = USER,
        chat: int | None = None,
        thread: int | None = None,
        date: int | None = None,
        **fields: Any,
    ) -> Message:
        """Someone writes, in their private chat and now unless told. `fields` are laid over the Bot API message."""
        chat = user if chat is None else chat
        self.chats.add(chat)
        content: Json = {"text": text, "entities": command_entities(text), "thread": thread}
        said = self._keep(chat, date, sender=person(user), **content)
        self._offer("message", said.as_json() | fields)
        return said

    def press(self, message: Message, label_or_data: str, *, user: int = USER) -> str:
        """Someone presses the one button with this data, or with this in its label; the id of the query."""
        buttons = list(itertools.chain.from_iterable(message.buttons))
        chosen = [button for button in buttons if button.get("callback_data") == label_or_data]
        chosen = chosen or [button for button in buttons if label_or_data in button["text"]]
        if len(chosen) != 1 or "callback_data" not in chosen[0]:
            raise LookupError(f"{label_or_data!r} is not one button to press among {buttons}")
        return self.query(message, chosen[0]["callback_data"], user=user)

    def query(self, message: Message, data: str, *, user: int = USER) -> str:
        """A callback query with any data, as of a forged button or one gone by now; the id of the query."""
        query_id = str(next(self._query_ids))
        self._queries.add(query_id)
        query = {"id": query_id, "from": person(user), "chat_instance": "1", "data": data}
        self._offer("callback_query", query | {"message": message.as_json()})
        return query_id

    def inject(self, update: Json) -> int:
        """An update as it is, of any kind and shape; its update_id, which it is given unless it has one."""
        update = {"update_id": next(self._update_ids)} | update
        self.pending.append(update)
        self._changed()
        return int(update["update_id"])

    def migrate(self, old: int, new: int, *, told: bool = True) -> None:
        """A group becomes a supergroup, which counts its messages anew; `told`: an update says so."""
        self._upgraded[old] = new
        self.chats.add(new)
        self._message_ids[new] = itertools.count(1)
        if told:
            service = self._keep(old, None, sender=person(USER), text="", entities=[]).as_json()
            del service["text"]
            self._offer("message", service | {"migrate_to_chat_id": new})

    @property
    def messages(self) -> list[Message]:
        """What the bot has written and not deleted, oldest first."""
        return [message for message in self._kept.values() if message.sender["is_bot"]]

    def calls(self, method: str) -> list[Call]:
        return [call for call in self.journal if call.method == method]

    def accepted(self, chat: int) -> list[float]:
        """When messages and new texts took effect in a chat, by the clock of the event loop, oldest first."""
        return list(self._accepted[chat])

    async def wait_for(self, predicate: Callable[[Message], bool], *, timeout: float = 10.0) -> Message:
        """The first message of the bot that satisfies the predicate, now or once something is sent or edited."""
        return await self.until(lambda: next(filter(predicate, self.messages), None), timeout=timeout)

    async def until(self, look: Callable[[], T | None], *, timeout: float = 10.0) -> T:
        """What `look` returns as soon as that is true; it looks again after every event on the server."""
        try:
            async with asyncio.timeout(timeout):
                while not (seen := look()):
                    await self._change.wait()
                return seen
        except TimeoutError:
            seen_so_far = "\n".join(map(str, [*self.messages[-50:], *self.journal[-20:]]))
            raise TimeoutError(f"not within {timeout} s; until then:\n{seen_so_far}") from None

    # The server's side.

    def _changed(self) -> None:
        """Wake all who wait, here and in polls. Not a Condition: its lock would make `say` a coroutine."""
        self._change.set()
        self._change = asyncio.Event()

    async def _serve(self, request: web.Request) -> web.Response:
        params, method = await read_params(request), request.match_info["method"]
        call = Call(at=asyncio.get_running_loop().time(), method=method, params=params)
        self.journal.append(call)
        self._changed()
        answer = await self._answer(request.match_info["token"], call)
        if request.transport is not None and answer is not None:
            call.code = answer.status
        elif request.transport is not None:
            request.transport.abort()
        self._changed()
        return web.Response() if answer is None else answer

    async def _answer(self, token: str, call: Call) -> web.Response | None:
        """None: the connection is to be dropped."""

        async def work() -> web.Response:
            try:
                return web.json_response({"ok": True, "result": await self._result(call)})
            except Refusal as refusal:
                return refusal.answer
            finally:
                self._changed()

        if token != self.token:
            return Refusal(401, "Unauthorized").answer
        return await self._course(call)(work)

    async def _result(self, call: Call) -> Any:
        do = getattr(self, "_do" + re.sub("([A-Z])", r"_\1", f"_{call.method}").lower(), None)
        if do is None:
            raise Refusal(404, "Not Found: method not found")
        return await do(call.params)

    def _offer(self, kind: str, content: Json) -> None:
        """An update for a bot that asked for this kind, or that has not chosen yet."""
        if not self._allowed or kind in self._allowed:
            self.inject({kind: content})

    def _keep(self, chat: int, date: int | None, **content: Any) -> Message:
        date = now() if date is None else date
        message = Message(id=next(self._message_ids[chat]), chat=chat, date=date, **content)
        self._kept[chat, message.id] = message
        return message

    def _chat(self, params: Json) -> int:
        if params.get("chat_id") not in self.chats:
            raise bad_request("chat not found")
        return int(params["chat_id"])

    def _writable(self, params: Json) -> int:
        """The chat, if the bot may write there."""
        chat = self._chat(params)
        if chat in self.blocked:
            raise Refusal(403, "Forbidden: bot was blocked by the user")
        if self.standing.get(chat, {}).get("status") in {"left", "kicked"}:
            raise Refusal(403, "Forbidden: bot is not a member of the supergroup chat")
        if chat in self._upgraded:
            raise Refusal(400, f"Bad Request: {UPGRADED}", {"migrate_to_chat_id": self._upgraded[chat]})
        return chat

    def _writable_topic(self, params: Json) -> int:
        chat = self._writable(params)
        if (chat, params.get("message_thread_id")) in self.deleted_topics:
            raise bad_request("message thread not found")
        return chat

    def _new(self, chat: int, params: Json, **content: Any) -> Json:
        """A message of the bot, if the chat may hear one now."""
        content |= {
            "buttons": read_buttons(params),
            "reply_to": self._reply_to(chat, params.get("reply_parameters", {})),
            "thread": params.get("message_thread_id"),
            "silent": params.get("disable_notification", False),
        }
        self._check_pace(chat)
        self._told(chat)
        return self._shown(self._keep(chat, None, sender=self._me, **content))

    def _check_pace(self, chat: int) -> None:
        """Whoever was told to wait is refused until then, too."""
        if self.flood is None:
            return
        here = asyncio.get_running_loop().time()
        wait = max(self.flood.wait(chat, self._accepted[chat], here), self._quiet_until[chat] - here)
        if wait <= self.flood.tolerance:
            return
        seconds = max(1, math.ceil(wait))
        self._quiet_until[chat] = here + seconds
        raise Refusal(429, f"Too Many Requests: retry after {seconds}", {"retry_after": seconds})

    def _told(self, chat: int) -> None:
        self._accepted[chat].append(asyncio.get_running_loop().time())

    def _find(self, params: Json, *, to: str) -> Message:
        message = self._kept.get((self._writable(params), params.get("message_id", 0)))
        if message is None or (message.chat, message.thread) in self.deleted_topics:
            raise bad_request(f"message to {to} not found")
        return message

    def _edit(self, message: Message, text: str, entities: list[Json], buttons: list[list[Json]]) -> Json:
        if message.sender != self._me:
            raise bad_request("message can't be edited")
        if (message.text, message.entities, message.buttons) == (text, entities, buttons):
            raise bad_request(NOT_MODIFIED)
        message.text, message.entities, message.buttons = text, entities, buttons
        message.edits += 1
        return self._shown(message)

    def _shown(self, message: Message) -> Json:
        original = self._kept.get((message.chat, message.reply_to or 0))
        return message.as_json() | ({"reply_to_message": original.as_json()} if original else {})

    def _reply_to(self, chat: int, reply: Json) -> int | None:
        number: int | None = reply.get("message_id")
        if number is None or (chat, number) in self._kept:
            return number
        if reply.get("allow_sending_without_reply"):
            return None
        raise bad_request("message to be replied not found")

    def _confirm(self, offset: int) -> None:
        """Forget the updates below the offset; a negative one counts from the end.

        By the letter of the documentation. The real server takes an offset far above its ids for a mistake and
        forgets nothing; a bot should not count on that.
        """
        if offset < 0:
            self.pending = self.pending[offset:]
        self.pending = [update for update in self.pending if update["update_id"] >= offset]

    async def _news(self, timeout: float) -> None:
        """Wait for an update. Of two polls that wait, the older one is refused."""
        self._newest_poll += 1
        this_poll = self._newest_poll
        self._changed()
        with suppress(TimeoutError):
            await self.until(
                lambda: bool(self.pending) or self._closing or this_poll != self._newest_poll,
                timeout=timeout,
            )
        if this_poll != self._newest_poll:
            raise Refusal(409, SECOND_POLLER)
        if self._closing:
            raise Refusal(500, "Internal Server Error: restart")

    # The methods of the Bot API.

    async def _do_get_me(self, _: Json) -> Json:
        return self._me

    async def _do_get_updates(self, params: Json) -> list[Json]:
        """Updates from the offset on, again and again until a higher offset confirms them."""
        if self.webhook:
            raise Refusal(409, WEBHOOK_ACTIVE)
        self._allowed = params.get("allowed_updates", self._allowed)
        self._confirm(params.get("offset", 0))
        timeout = min(max(params.get("timeout", 0), 0), LONGEST_POLL)
        if timeout and not self.pending:
            await self._news(timeout)
        return self.pending[: min(max(params.get("limit", 100), 1), 100)]

    async def _do_delete_webhook(self, params: Json) -> bool:
        if params.get("drop_pending_updates"):
            self.pending = []
        self.webhook = ""
        return True

    async def _do_get_webhook_info(self, _: Json) -> Json:
        return {
            "url": self.webhook,
            "has_custom_certificate": False,
            "pending_update_count": len(self.pending),
        }

    async def _do_set_my_commands(self, params: Json) -> bool:
        self._commands[commands_key(params)] = params["commands"]
        return True

    async def _do_get_my_commands(self, params: Json) -> list[Json]:
        return self._commands.get(commands_key(params), [])

    async def _do_send_message(self, params: Json) -> Json:
        chat = self._writable_topic(params)
        text, entities = read_text(params, too_long="message is too long")
        return self._new(chat, params, text=text, entities=entities)

    async def _do_send_photo(self, params: Json) -> Json:
        """Kept as it was sent: what the real server makes of a picture is not known here."""
        chat = self._writable_topic(params)
        return self._new(chat, params, text=read_caption(params), entities=[], photo=read_photo(params))

    async def _do_edit_message_text(self, params: Json) -> Json:
        """New text and new buttons: an edit without `reply_markup` takes the buttons away."""
        message = self._find(params, to="edit")
        if message.photo:
            raise bad_request("there is no text in the message to edit")
        text, entities = read_text(params, too_long="MESSAGE_TOO_LONG")
        self._check_pace(message.chat)
        edited = self._edit(message, text, entities, read_buttons(params))
        self._told(message.chat)
        return edited

    async def _do_edit_message_reply_markup(self, params: Json) -> Json:
        message = self._find(params, to="edit")
        return self._edit(message, message.text, message.entities, read_buttons(params))

    async def _do_answer_callback_query(self, params: Json) -> bool:
        if params.get("callback_query_id") not in self._queries:
            raise bad_request("query is too old and response timeout expired or query ID is invalid")
        if len(params.get("text", "")) > 200:
            raise bad_request("MESSAGE_TOO_LONG")
        return True

    async def _do_delete_message(self, params: Json) -> bool:
        message = self._find(params, to="delete")
        del self._kept[message.chat, message.id]
        return True

    async def _do_get_chat(self, params: Json) -> Json:
        gifts = "unlimited_gifts limited_gifts unique_gifts premium_subscription gifts_from_channels"
        shown: Json = {"accepted_gift_types": dict.fromkeys(gifts.split(), False)}
        shown |= {"accent_color_id": 0, "max_reaction_count": 11}
        chat = self._chat(params)
        return chat_json(chat) | shown | self.about.get(chat, {})

    async def _do_get_chat_member(self, params: Json) -> Json:
        """Everybody is a member of every chat, but for what `standing` says of the bot."""
        chat, user = self._chat(params), params["user_id"]
        if user != self._me["id"]:
            return {"status": "member", "user": person(user)}
        return {"status": "member", "user": self._me} | self.standing.get(chat, {})

    async def _do_send_chat_action(self, params: Json) -> bool:
        self._writable(params)
        if not params.get("action"):
            raise bad_request("wrong parameter action in request")
        return True

"""A Bot API server on the loopback interface: what a bot meets in Telegram, without Telegram.

The bot under test is pointed at `BotApi.url`. The test plays the people in the chat (`say`, `press`,
`inject`) and the bad days of the server (`fault`); it reads what the chat shows (`messages`, `wait_for`) and
what was asked (`journal`). A Bot API method is a coroutine `_do_<its_name>`.

Refusals are worded as the real server words them, as far as that is known. Texts carry entities: `parse_mode`
is refused. Messages are dated by the wall clock, because the bot measures their age by it.
"""
# ruff: noqa: ASYNC109 - a test states its patience where it waits

import asyncio
import itertools
import json
import re
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self, TypeVar

from aiohttp import web

Json = dict[str, Any]
T = TypeVar("T")

TOKEN = "424242:" + "T" * 35
USER = 1001
GROUP = -1001000000001

PLAIN_PARAMS = {"text", "caption", "callback_query_id", "url", "parse_mode", "language_code"}
"""Parameters that are strings; a form carries every other one as JSON."""
NOT_MODIFIED = "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"
SECOND_POLLER = (
    "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
)
TEXT_BUTTON = "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"
WEBHOOK_ACTIVE = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
BUTTON_LOOKS = {"text", "style", "icon_custom_emoji_id"}
BOT_COMMAND = re.compile(r"(?<![\w/<>])/[A-Za-z0-9_]{1,64}(?:@\w{3,32})?(?![\w/<>])")


class Refusal(Exception):  # noqa: N818 - an answer of the server, not an error of it
    def __init__(self, code: int, description: str, parameters: Json | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.body: Json = {"ok": False, "error_code": code, "description": description}
        if parameters:
            self.body["parameters"] = parameters


def bad_request(why: str) -> Refusal:
    return Refusal(400, f"Bad Request: {why}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request. `at` is the clock of the event loop, monotonic; `params` are decoded."""

    at: float
    method: str
    params: Json


@dataclass(slots=True, kw_only=True, eq=False)
class Message:
    """A message as the chat shows it now: an edit changes it in place. `buttons` are the Bot API's, in rows."""

    id: int
    chat: int
    sender: Json
    date: int
    text: str
    entities: list[Json]
    thread: int | None = None
    reply_to: int | None = None
    buttons: list[list[Json]] = field(default_factory=list)
    silent: bool = False
    edits: int = 0

    def as_json(self) -> Json:
        always = {"message_id": self.id, "from": self.sender, "chat": chat_json(self.chat), "date": self.date}
        optional: Json = {
            "entities": self.entities,
            "message_thread_id": self.thread,
            "is_topic_message": self.thread is not None,
            "reply_markup": {"inline_keyboard": self.buttons} if self.buttons else None,
            "edit_date": self.date if self.edits else None,
        }
        return always | {"text": self.text} | {name: value for name, value in optional.items() if value}


def person(user: int) -> Json:
    return {"id": user, "is_bot": False, "first_name": f"User {user}", "username": f"user_{user}"}


def chat_json(chat: int) -> Json:
    """Positive ids are private chats, negative ids supergroups with topics."""
    if chat > 0:
        return {"id": chat, "type": "private", "first_name": f"User {chat}"}
    return {"id": chat, "type": "supergroup", "title": f"Group {chat}", "is_forum": True}


def utf16_length(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def command_entities(text: str) -> list[Json]:
    return [
        {"type": "bot_command", "offset": utf16_length(text[: hit.start()]), "length": len(hit[0])}
        for hit in BOT_COMMAND.finditer(text)
    ]


def read_text(params: Json, *, too_long: str) -> tuple[str, list[Json]]:
    if params.get("parse_mode"):
        raise bad_request("unsupported parse_mode")
    text: str = params.get("text", "")
    entities: list[Json] = params.get("entities", [])
    for entity in entities:
        check_entity(text, entity["offset"], entity["offset"] + entity["length"])
    if not text.strip():
        raise bad_request("message text is empty")
    if utf16_length(text) > 4096:
        raise bad_request(too_long)
    return text, entities


def check_entity(text: str, start: int, end: int) -> None:
    """An entity lies inside the text and splits no character; offsets are UTF-16 units."""
    units = text.encode("utf-16-le")
    which = f"entity beginning at UTF-16 offset {start} ends"
    if not 0 <= start < end <= len(units) // 2:
        raise bad_request(f"{which} after the end of the text at UTF-16 offset {end}")
    try:
        units[2 * start : 2 * end].decode("utf-16-le")
    except UnicodeDecodeError:
        raise bad_request(f"{which} in a middle of a UTF-16 symbol") from None


def read_buttons(params: Json) -> list[list[Json]]:
    rows: list[list[Json]] = params.get("reply_markup", {}).get("inline_keyboard", [])
    for button in itertools.chain.from_iterable(rows):
        if not button.keys() - BUTTON_LOOKS:
            raise bad_request(TEXT_BUTTON)
        if len(button.get("callback_data", "").encode()) > 64:
            raise bad_request("BUTTON_DATA_INVALID")
    return [row for row in rows if row]


def commands_key(params: Json) -> str:
    scope = params.get("scope", {"type": "default"})
    return json.dumps([scope, params.get("language_code", "")], sort_keys=True)


async def read_params(request: web.Request) -> Json:
    """Parameters of the query, and of a body that is a form of either kind or JSON. Files are left out."""
    if request.content_type == "application/json":
        return {**request.query, **await request.json()}
    sent = {**request.query, **await request.post()}
    return {name: decode(name, value) for name, value in sent.items() if isinstance(value, str)}


def decode(name: str, value: str) -> Any:
    if name in PLAIN_PARAMS:
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value


class BotApi:
    """The server, as an async context manager; it serves while the context is open.

    `token` may be changed at any time: calls with another one are unauthorized. `chats` are those the bot may
    write to; a person who says something opens theirs. `pending` are the updates that no poll has confirmed.
    `about` is laid over what a chat tells of itself, `standing` over the bot's own membership in one. While
    `webhook` is set nobody can poll.
    """

    def __init__(self, *, token: str = TOKEN, chats: Iterable[int] = (USER, GROUP)) -> None:
        self.token = token
        self.url = ""
        self.chats = set(chats)
        self.journal: list[Call] = []
        self.pending: list[Json] = []
        self.about: dict[int, Json] = {}
        self.standing: dict[int, Json] = {}
        self.webhook = ""
        names = {"first_name": "Loopwarden", "username": "loopwarden_bot"}
        self._me: Json = {"id": int(token.partition(":")[0]), "is_bot": True} | names
        self._kept: dict[tuple[int, int], Message] = {}
        self._commands: dict[str, list[Json]] = {}
        self._queries: set[str] = set()
        self._faults: defaultdict[str, deque[Refusal]] = defaultdict(deque)
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

    def fault(
        self,
        method: str,
        *,
        error_code: int,
        description: str,
        parameters: Json | None = None,
        times: int = 1,
    ) -> None:
        """The next calls of a method fail and have no effect."""
        self._faults[method].extend(Refusal(error_code, description, parameters) for _ in range(times))

    @property
    def messages(self) -> list[Message]:
        """What the bot has written and not deleted, oldest first."""
        return [message for message in self._kept.values() if message.sender["is_bot"]]

    def calls(self, method: str) -> list[Call]:
        return [call for call in self.journal if call.method == method]

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
            seen_so_far = "\n".join(map(str, [*self.messages, *self.journal[-20:]]))
            raise TimeoutError(f"not within {timeout} s; until then:\n{seen_so_far}") from None

    # The server's side.

    def _changed(self) -> None:
        """Wake all who wait, here and in polls. Not a Condition: its lock would make `say` a coroutine."""
        self._change.set()
        self._change = asyncio.Event()

    async def _serve(self, request: web.Request) -> web.Response:
        params, method = await read_params(request), request.match_info["method"]
        self.journal.append(Call(at=asyncio.get_running_loop().time(), method=method, params=params))
        try:
            result = await self._result(request.match_info["token"], method, params)
        except Refusal as refusal:
            return web.json_response(refusal.body, status=refusal.code)
        finally:
            self._changed()
        return web.json_response({"ok": True, "result": result})

    async def _result(self, token: str, method: str, params: Json) -> Any:
        if token != self.token:
            raise Refusal(401, "Unauthorized")
        if self._faults[method]:
            raise self._faults[method].popleft()
        do = getattr(self, "_do" + re.sub("([A-Z])", r"_\1", f"_{method}").lower(), None)
        if do is None:
            raise Refusal(404, "Not Found: method not found")
        return await do(params)

    def _offer(self, kind: str, content: Json) -> None:
        """An update for a bot that asked for this kind, or that has not chosen yet."""
        if not self._allowed or kind in self._allowed:
            self.inject({kind: content})

    def _keep(self, chat: int, date: int | None, **content: Any) -> Message:
        date = int(time.time()) if date is None else date  # noqa: TID251 - Telegram's own clock
        message = Message(id=next(self._message_ids[chat]), chat=chat, date=date, **content)
        self._kept[chat, message.id] = message
        return message

    def _chat(self, params: Json) -> int:
        if params.get("chat_id") not in self.chats:
            raise bad_request("chat not found")
        return int(params["chat_id"])

    def _find(self, params: Json, *, to: str) -> Message:
        message = self._kept.get((self._chat(params), params.get("message_id", 0)))
        if message is None:
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
        """Forget the updates below the offset; a negative one counts from the end."""
        if offset < 0:
            self.pending = self.pending[offset:]
        self.pending = [update for update in self.pending if update["update_id"] >= offset]

    # The methods of the Bot API.

    async def _do_get_me(self, _: Json) -> Json:
        return self._me

    async def _do_get_updates(self, params: Json) -> list[Json]:
        """Updates from the offset on, again and again until a higher offset confirms them."""
        if self.webhook:
            raise Refusal(409, WEBHOOK_ACTIVE)
        self._newest_poll += 1
        this_poll = self._newest_poll
        self._allowed = params.get("allowed_updates", self._allowed)
        self._confirm(params.get("offset", 0))
        self._changed()
        with suppress(TimeoutError):
            await self.until(
                lambda: bool(self.pending) or self._closing or this_poll != self._newest_poll,
                timeout=params.get("timeout", 0),
            )
        if this_poll != self._newest_poll:
            raise Refusal(409, SECOND_POLLER)
        if self._closing:
            raise Refusal(500, "Internal Server Error: restart")
        return self.pending[: min(params.get("limit", 100), 100)]

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
        chat = self._chat(params)
        text, entities = read_text(params, too_long="message is too long")
        content: Json = {
            "text": text,
            "entities": entities,
            "buttons": read_buttons(params),
            "reply_to": self._reply_to(chat, params.get("reply_parameters", {})),
            "thread": params.get("message_thread_id"),
            "silent": params.get("disable_notification", False),
        }
        return self._shown(self._keep(chat, None, sender=self._me, **content))

    async def _do_edit_message_text(self, params: Json) -> Json:
        """New text and new buttons: an edit without `reply_markup` takes the buttons away."""
        message = self._find(params, to="edit")
        text, entities = read_text(params, too_long="MESSAGE_TOO_LONG")
        return self._edit(message, text, entities, read_buttons(params))

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
        chat = self._chat(params)
        if self.standing.get(chat, {}).get("status") in {"left", "kicked"}:
            raise Refusal(403, "Forbidden: bot is not a member of the supergroup chat")
        if not params.get("action"):
            raise bad_request("wrong parameter action in request")
        return True

"""What the loopback Bot API server keeps and reads: messages, calls, refusals, and the parameters of a request."""

import itertools
import json
import re
import time
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

Json = dict[str, Any]

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
UPGRADED = "group chat was upgraded to a supergroup chat"
PNG = b"\x89PNG\r\n\x1a\n"
BUTTON_LOOKS = {"text", "style", "icon_custom_emoji_id"}
BOT_COMMAND = re.compile(r"(?<![\w/<>])/[A-Za-z0-9_]{1,64}(?:@\w{3,32})?(?![\w/<>])")


class Refusal(Exception):  # noqa: N818 - an answer of the server, not an error of it
    def __init__(self, code: int, description: str, parameters: Json | None = None) -> None:
        super().__init__(description)
        self.code = code
        self.body: Json = {"ok": False, "error_code": code, "description": description}
        if parameters:
            self.body["parameters"] = parameters

    @property
    def answer(self) -> web.Response:
        return web.json_response(self.body, status=self.code)


def bad_request(why: str) -> Refusal:
    return Refusal(400, f"Bad Request: {why}")


@dataclass(slots=True, kw_only=True)
class Call:
    """One request. `at` is its arrival by the clock of the event loop, monotonic; `params` are decoded.

    `code` is the HTTP status of the answer: None as long as there is none, for ever if the connection was
    dropped or nobody was left at its other end.
    """

    at: float
    method: str
    params: Json
    code: int | None = None


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
    photo: bytes = b""
    """Of one with a picture, whose `text` is its caption."""

    def as_json(self) -> Json:
        always = {"message_id": self.id, "from": self.sender, "chat": chat_json(self.chat), "date": self.date}
        text, entities = ("caption", "caption_entities") if self.photo else ("text", "entities")
        optional: Json = {
            "photo": photo_sizes(self.photo) if self.photo else None,
            entities: self.entities,
            "message_thread_id": self.thread,
            "is_topic_message": self.thread is not None,
            "reply_markup": {"inline_keyboard": self.buttons} if self.buttons else None,
            "edit_date": self.date if self.edits else None,
        }
        return always | {text: self.text} | {name: value for name, value in optional.items() if value}


def now() -> int:
    return int(time.time())  # noqa: TID251 - Telegram's own clock


def person(user: int) -> Json:
    return {"id": user, "is_bot": False, "first_name": f"User {user}", "username": f"user_{user}"}


def chat_json(chat: int) -> Json:
    """Positive ids are private chats, ids that begin with -100 supergroups with topics, other ones basic groups."""
    if chat > 0:
        return {"id": chat, "type": "private", "first_name": f"User {chat}"}
    if chat > -(10**12):
        return {"id": chat, "type": "group", "title": f"Group {chat}"}
    return {"id": chat, "type": "supergroup", "title": f"Group {chat}", "is_forum": True}


def photo_sizes(photo: bytes) -> list[Json]:
    width, height = dimensions(photo)
    known = {"file_id": "photo", "file_unique_id": "photo", "file_size": len(photo)}
    return [known | {"width": width, "height": height}]


def dimensions(photo: bytes) -> tuple[int, int]:
    """Width and height of a PNG."""
    return int.from_bytes(photo[16:20]), int.from_bytes(photo[20:24])


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


def read_photo(params: Json) -> bytes:
    """A PNG, within the limits of a photo."""
    photo = params.get("photo")
    if not isinstance(photo, bytes):
        raise bad_request("there is no photo in the request")
    if not photo.startswith(PNG):
        raise bad_request("IMAGE_PROCESS_FAILED")
    sides = dimensions(photo)
    if sum(sides) > 10_000 or max(sides) > 20 * min(sides):
        raise bad_request("PHOTO_INVALID_DIMENSIONS")
    return photo


def read_caption(params: Json) -> str:
    caption: str = params.get("caption", "")
    if utf16_length(caption) > 1024:
        raise bad_request("message caption is too long")
    return caption


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


class Upload(bytes):
    """A file of a request."""

    def __repr__(self) -> str:
        return f"<{len(self)} bytes>"


async def read_params(request: web.Request) -> Json:
    """Parameters of the query, and of a body that is a form of either kind or JSON; files in place of their names."""
    if request.content_type == "application/json":
        return {**request.query, **await request.json()}
    sent = {**request.query, **await request.post()}
    files = {
        f"attach://{name}": Upload(value.file.read())
        for name, value in sent.items()
        if isinstance(value, web.FileField)
    }
    return {
        name: files.get(value) or decode(name, value)
        for name, value in sent.items()
        if isinstance(value, str)
    }


def decode(name: str, value: str) -> Any:
    if name in PLAIN_PARAMS:
        return value
    try:
        return json.loads(value)
    except ValueError:
        return value

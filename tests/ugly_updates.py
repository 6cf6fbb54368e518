"""Updates that are no plain command: from those who may not give any, or hard to read, or both."""

from dataclasses import dataclass
from typing import Any

from tests.botapi import GROUP, USER, Json
from tests.botapi_model import chat_json, command_entities, now, person

ANONYMOUS_ADMIN, CHANNEL_WRITER, SERVICE = 1087968824, 136817688, 777000
"""Accounts of Telegram that write for others: GroupAnonymousBot, Channel_Bot, and the account Telegram."""
STRANGER, OTHER_BOT, CHANNEL = 31, 323232, -1003333333333


@dataclass(frozen=True, slots=True, kw_only=True)
class Ugly:
    """An update for `inject`.

    `is_decodable` by the models of aiogram; `is_command`: the user did say that to the bot, it is only strange.
    """

    update: Json
    is_decodable: bool = True
    is_command: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What would be a command, if `user` had written it to the bot. Each method makes another message of it."""

    text: str
    user: int
    chat: int

    def message(self, **fields: Any) -> Json:
        always = {"message_id": 4711, "date": now(), "chat": chat_json(self.chat), "from": person(self.user)}
        return always | {"text": self.text, "entities": command_entities(self.text)} | fields

    def in_group(self, **fields: Any) -> Json:
        return self.message(chat=chat_json(GROUP)) | fields

    def post(self, **fields: Any) -> Json:
        """In a channel nobody is the sender."""
        post = self.message(chat=channel(), sender_chat=channel(), author_signature="Owner") | fields
        del post["from"]
        return post

    def unsigned(self) -> Json:
        message = self.message()
        del message["from"]
        return message

    def nowhere(self) -> Json:
        message = self.message()
        del message["chat"]
        return message

    def answering(self, depth: int) -> Json:
        """An answer to an answer to an answer..."""
        message = self.message()
        for _ in range(depth):
            message = self.message(reply_to_message=message)
        return message


def channel() -> Json:
    return {"id": CHANNEL, "type": "channel", "title": "Channel"}


def bot(user: int, name: str) -> Json:
    return {"id": user, "is_bot": True, "first_name": name, "username": name}


def origin_user(user: int) -> Json:
    return {"type": "user", "date": now() - 60, "sender_user": person(user)}


def origin_channel() -> Json:
    return {"type": "channel", "date": now() - 60, "chat": channel(), "message_id": 1}


def nested(depth: int) -> list[Any]:
    outer: list[Any] = []
    for _ in range(depth):
        outer = [outer]
    return outer


def ugly(
    text: str = "/kill 7", *, user: int = USER, chat: int = USER, data: str = "kill:7"
) -> dict[str, Ugly]:
    """All of them by name. `user` says `text` in `chat` or presses a button with `data`, as far as possible."""
    said = Said(text=text, user=user, chat=chat)
    refused = commands_of_nobody(said) | presses_of_nothing(said, data) | strange(said)
    return (
        {name: Ugly(update=update) for name, update in refused.items()}
        | {name: Ugly(update=update, is_command=True) for name, update in strange_commands(said).items()}
        | {name: Ugly(update=update, is_decodable=False) for name, update in undecodable(said).items()}
    )


def commands_of_nobody(said: Said) -> dict[str, Json]:
    """Whoever forwards, edits or hides does not command."""
    business = {"business_connection_id": "b-1"}
    forwarded = {"forward_origin": origin_channel(), "sender_chat": channel(), "is_automatic_forward": True}
    as_channel = {"from": bot(CHANNEL_WRITER, "Channel_Bot"), "sender_chat": channel()}
    as_group = {"from": bot(ANONYMOUS_ADMIN, "GroupAnonymousBot"), "sender_chat": chat_json(GROUP)}
    telegram = person(SERVICE) | {"first_name": "Telegram"}
    return {
        "forwarded": {"message": said.message(forward_origin=origin_user(STRANGER))},
        "forwarded by its author": {"message": said.message(forward_origin=origin_user(said.user))},
        "forwarded from a channel": {"message": said.message(forward_origin=origin_channel())},
        "automatic forward": {"message": said.in_group(**forwarded, **{"from": telegram})},
        "automatic forward with the user as sender": {"message": said.in_group(**forwarded)},
        "anonymous admin": {"message": said.in_group(**as_group)},
        "user for the group": {"message": said.in_group(sender_chat=chat_json(GROUP))},
        "user as a channel": {"message": said.in_group(**as_channel)},
        "channel post": {"channel_post": said.post()},
        "edited channel post": {"edited_channel_post": said.post(edit_date=now())},
        "edited": {"edited_message": said.message(edit_date=now())},
        "business": {"business_message": said.message(**business)},
        "edited business": {"edited_business_message": said.message(**business, edit_date=now())},
        "business as a message": {"message": said.message(**business)},
        "guest": {"guest_message": said.message()},
        "via another bot": {"message": said.message(via_bot=bot(OTHER_BOT, "other_bot"))},
        "another bot": {"message": said.in_group(**{"from": bot(OTHER_BOT, "other_bot")})},
        "user who is a bot": {"message": said.message(**{"from": bot(said.user, "other_bot")})},
        "service account": {"message": said.message(**{"from": telegram})},
        "nobody": {"message": said.unsigned()},
    }


def presses_of_nothing(said: Said, data: str) -> dict[str, Json]:
    """Presses whose message the bot cannot see: gone, too old, or never its own."""
    query = {"id": "9999", "from": person(said.user), "chat_instance": "1", "data": data}
    gone = {"chat": chat_json(said.chat), "message_id": 4711, "date": 0}
    return {
        "press on an inaccessible message": {"callback_query": query | {"message": gone}},
        "press on an inline message": {"callback_query": query | {"inline_message_id": "i-1"}},
        "press of another bot": {
            "callback_query": query | {"from": bot(OTHER_BOT, "other_bot"), "message": said.message()}
        },
    }


def strange(said: Said) -> dict[str, Json]:
    """A model takes these, and there is nothing to do about them."""
    return {
        "unknown kind": {"novelty": {"text": said.text}},
        "no kind": {},
        "kind without content": {"message": None},
        "user beyond 64 bits": {"message": said.message(**{"from": person(2**70)})},
        "chat beyond 64 bits": {"message": said.message(chat=chat_json(2**70))},
        "date before 1970": {"message": said.message(date=-(2**33))},
    }


def strange_commands(said: Said) -> dict[str, Json]:
    """A model takes these; a database, or a writer of UTF-8 or of JSON, may not."""
    surrogate_name = person(said.user) | {"first_name": "\udc00"}
    far_entity = {"type": "bot_command", "offset": 0, "length": 9999}
    return {
        "lone surrogate": {"message": said.message(text=f"{said.text} \ud83d")},
        "lone surrogate in a name": {"message": said.message(**{"from": surrogate_name})},
        "NUL": {"message": said.message(text=f"{said.text}\0")},
        "entity beyond the text": {"message": said.message(entities=[far_entity])},
        "nested novelty": {"message": said.message(novelty=nested(500))},
    }


def undecodable(said: Said) -> dict[str, Json]:
    """A kind that is known in a shape that is not; a batch with one of these is refused as a whole by aiogram."""
    return {
        "message without chat": {"message": said.nowhere()},
        "message that is a list": {"message": [said.text]},
        "message that is a text": {"message": said.text},
        "text that is a number": {"message": said.message(text=7)},
        "date in words": {"message": said.message(date="noon")},
        "date beyond all years": {"message": said.message(date=2**62)},
        "entities that are no list": {"message": said.message(entities="none")},
        "press without a user": {"callback_query": {"id": "9999", "chat_instance": "1", "data": "kill:7"}},
        "nested answers": {"message": said.answering(300)},
    }

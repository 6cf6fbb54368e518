"""What an agent costs, from the price in the watch list to the chat."""

import json
from datetime import UTC, datetime

from tests.bot.room import WATCHLIST, Room

PRICED = (
    WATCHLIST.replace('"gateway"\npath = "calls.jsonl"', '"claude-code"\npath = "projects/**/*.jsonl"')
    + '\n[prices]\n"claude-*" = { input = 3, output = 15, cached = 0.3 }\n'
)


def answer(room: Room, number: int, command: str, model: str = "claude-sonnet-5") -> str:
    """An answer of the model with one call in it: $0.0103 by those prices."""
    at = datetime.fromtimestamp(room.clock.time - 8 + number, UTC).isoformat()
    name = f"{room.clock.time}-{number}"
    use = {"type": "tool_use", "id": f"toolu_{name}", "name": "Bash", "input": {"command": command}}
    usage = {
        "input_tokens": 900,
        "cache_creation_input_tokens": 100,
        "cache_read_input_tokens": 1000,
        "output_tokens": 467,
    }
    message = {"id": f"msg_{name}", "model": model, "stop_reason": "tool_use"}
    record = {"type": "assistant", "sessionId": "s-1", "timestamp": at, "cwd": "/home/op/shop"}
    return json.dumps(record | {"message": message | {"content": [use], "usage": usage}}) + "\n"


def write(room: Room, *commands: str, model: str = "claude-sonnet-5") -> None:
    log = room.folder / "projects" / "shop" / "s-1.jsonl"
    log.parent.mkdir(parents=True, exist_ok=True)
    with log.open("a") as file:
        file.writelines(answer(room, number, command, model) for number, command in enumerate(commands, 1))


async def test_money_stands_beside_tokens_wherever_they_are_told(room: Room) -> None:
    """In the alert, the lists, one session, and the report of a stop."""
    await room.rewrite(PRICED)
    await room.scan()
    write(room, "ls", "make all the things")
    await room.scan()
    room.clock.go_on(60)
    write(room, *["make test"] * 8)
    [alert] = await room.scan()
    assert alert.text.splitlines()[2] == "7 calls in 6 s, 17\u202f269 tokens, $0.072"
    assert "10 calls, 24\u202f670 tokens, $0.10" in (await room.ask("/agents")).text
    assert "10 calls, 0 errors, tokens 24\u202f670, $0.10" in (await room.ask("/agent 1")).text
    assert "7 calls, 17\u202f269 tokens, $0.072" in (await room.ask("/incidents")).text
    for _ in range(2):
        room.clock.go_on(60)
        write(room, *["make test"] * 8)
        await room.scan()
    _, report = await room.stop_agents()
    assert "In circles: 23 calls in 2 min 6 s, 56\u202f741 tokens, $0.24." in report.text


async def test_a_sum_to_which_a_model_without_price_belongs_is_at_least_that(room: Room) -> None:
    """A session may change its model. Where no price at all is known there is no money to speak of."""
    await room.rewrite(PRICED)
    await room.scan()
    write(room, *["make test"] * 8, model="unheard-of")
    [alert] = await room.scan()
    assert alert.text.splitlines()[2] == "7 calls in 6 s, 17\u202f269 tokens"
    room.clock.go_on(60)
    write(room, *["make test"] * 8)
    await room.scan()
    assert "16 calls, 0 errors, tokens 39\u202f472, at least $0.082" in (await room.ask("/agent 1")).text
    assert "15 calls, 37\u202f005 tokens, at least $0.082" in (await room.ask("/incidents")).text

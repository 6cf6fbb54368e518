"""A process that has imported the bot and forks one for whoever connects: `import aiogram` takes seconds.

usage: preloaded.py FD

FD is a socket that listens already, so that one may connect while the import is under way. Who connects sends
one line of JSON, an `Order`, and reads two: the pid of the bot, and its exit code (negative for a signal) once
it has ended. The process ends when its standard input does.
"""

import gc
import json
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import TypedDict

import bot.app  # noqa: F401 - what is to be imported only once
from bot.__main__ import main
from tests.crashing import Crash, arm


class Order(TypedDict):
    """How a bot is to be run."""

    environment: dict[str, str]
    folder: str
    log: str
    """The file that its standard output and error are appended to."""
    crash: Crash | None
    """Where the bot is to die."""


def serve(listener: socket.socket) -> int:
    # What was imported lives to the end: without the collector's last look at it all, a bot ends at once.
    gc.freeze()
    # So that the kernel reaps the attendants.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with listener:
        while True:
            ready, _, _ = select.select([listener, sys.stdin], [], [])
            if sys.stdin in ready:
                return 0
            connection, _ = listener.accept()
            if not os.fork():
                break
            connection.close()
    return attend(connection)


def attend(connection: socket.socket) -> int:
    """Run one bot and report what becomes of it; return twice, as the attendant and as the bot."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    with connection, connection.makefile("rw") as talk:
        order: Order = json.loads(talk.readline())
        pid = os.fork()
        if pid:
            talk.write(f"{pid}\n")
            talk.flush()
            _, status = os.waitpid(pid, 0)
            talk.write(f"{os.waitstatus_to_exitcode(status)}\n")
            return 0
    return become_bot(order)


def become_bot(order: Order) -> int:
    os.environ.clear()
    os.environ.update(order["environment"])
    os.chdir(order["folder"])
    with Path(order["log"]).open("ab") as log, Path(os.devnull).open("rb") as nothing:
        for stream, number in ((nothing, 0), (log, 1), (log, 2)):
            os.dup2(stream.fileno(), number)
    if order["crash"]:
        arm(order["crash"])
    return main(["run"])


if __name__ == "__main__":
    sys.exit(serve(socket.socket(fileno=int(sys.argv[1]))))

"""Takes connections from programs on this machine, a few at once.

Anybody on the machine can connect, and what they do must not use up the descriptors that guarding needs.
"""

import asyncio
import logging
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from aiohttp import web

_MOST: Final = 32
"""Connections at once; further ones are closed."""
_PAUSE: Final = 1.0
"""Seconds for which nothing is taken when the system has no more to give."""


@asynccontextmanager
async def accepting(listener: socket.socket, server: web.Server, log: logging.Logger) -> AsyncIterator[None]:
    """Hand connections to `server` while the block runs; then nothing listens any more."""
    listener.setblocking(False)
    taking = asyncio.ensure_future(_take(listener, server, log))
    try:
        yield
    finally:
        taking.cancel()
        with suppress(asyncio.CancelledError):
            await taking
        listener.close()


async def _take(listener: socket.socket, server: web.Server, log: logging.Logger) -> None:
    loop = asyncio.get_running_loop()
    while True:
        try:
            connection, _ = await loop.sock_accept(listener)
        except OSError as error:
            log.warning("no connection can be taken: %s", os.strerror(error.errno or 0))
            await asyncio.sleep(_PAUSE)
            continue
        if len(server.connections) >= _MOST:
            connection.close()
            continue
        # Here and not by the loop's own server: that one counts nothing, and has taken a hundred before it looks again.
        await loop.connect_accepted_socket(server, connection)

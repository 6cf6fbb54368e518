"""The port on which reports of runs are taken: is it free?"""

import os
import socket
from typing import Final

from bot.checking.finding import Finding, error, fine
from bot.reporting import HOST

_SUBJECT: Final = "reports"


def check_port(port: int, *, is_running: bool) -> Finding:
    """Listen there for a moment, unless the bot that runs does."""
    says = f"taken on http://{HOST}:{port}/runs/NAME"
    if is_running:
        return fine(_SUBJECT, f"{says}, by the bot that runs")
    try:
        socket.create_server((HOST, port)).close()
    except OSError as taken:
        why = os.strerror(taken.errno) if taken.errno else str(taken)
        return error(
            _SUBJECT, f"port {port} cannot be listened on: {why}", "choose another LOOPWARDEN_REPORT_PORT"
        )
    return fine(_SUBJECT, says)

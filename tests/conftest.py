"""What holds for every test, and the stage for those of the whole product."""

import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from hypothesis import settings

from tests.botapi import BotApi
from tests.stage import TESTS, Stage

# Other programs run on this machine, too: how long an example takes says nothing.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


@pytest.fixture(scope="session")
def preloaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Where bots can be ordered. What forks them imports for seconds; meanwhile the first test begins."""
    path = tmp_path_factory.mktemp("preloaded") / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        command = (sys.executable, str(TESTS / "preloaded.py"), f"{listener.fileno()}")
        process = subprocess.Popen(command, stdin=subprocess.PIPE, pass_fds=[listener.fileno()])  # noqa: S603 - ours
    with process:
        yield path


@pytest.fixture
async def stage(tmp_path: Path, preloaded: Path) -> AsyncIterator[Stage]:
    async with AsyncExitStack() as stack:
        api = await stack.enter_async_context(BotApi())
        stage = Stage(api=api, folder=tmp_path, preloaded=preloaded, stack=stack)
        stage.log.touch()
        yield stage

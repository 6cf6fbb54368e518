"""The command line `loopwarden`. Heavy imports only after the arguments are read: aiogram takes seconds."""

from __future__ import annotations

import gc
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING

from bot import __version__

if TYPE_CHECKING:
    import argparse
    import asyncio


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 it worked, 1 it did not, 2 it was asked wrongly."""
    given = sys.argv[1:] if arguments is None else arguments
    if given[:1] == ["hook"] and not {"-h", "--help"} & set(given):
        from bot.hook import hook

        return hook(given[1:])  # before so much as argparse is imported: an agent waits for it at every call
    if given[:1] == ["verify"] and not {"-h", "--help"} & set(given):
        return _verify(given[1:])
    options = _parser().parse_args(given)
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except KeyboardInterrupt:
        return 130  # as a shell says that SIGINT ended it


def _parser() -> argparse.ArgumentParser:
    import argparse

    parser = argparse.ArgumentParser(
        prog="loopwarden", description="Guards AI agents on this machine, from Telegram."
    )
    parser.add_argument("--version", action="version", version=f"loopwarden {__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    run = commands.add_parser("run", help="watch the agents and talk to the chat")
    run.set_defaults(command=_run)
    setup = commands.add_parser(
        "setup", help="show the ids of who writes to the bot, for the settings; needs the token only"
    )
    setup.set_defaults(command=_setup)
    check = commands.add_parser(
        "check", help="say whether `run` would work, and what is to be mended; changes nothing"
    )
    check.set_defaults(command=_check)
    sources = commands.add_parser(
        "sources", help="find the logs of known programs, and print the watch list that would read them"
    )
    sources.set_defaults(command=_sources)
    replay = commands.add_parser(
        "replay",
        help="say what would have been alerted and stopped in old logs, and what that would have saved",
    )
    replay.add_argument("paths", nargs="+", metavar="PATH", help="a file, a folder or a pattern")
    replay.add_argument(
        "--format", default="auto", help="the format of all of them; by default it is found out"
    )
    replay.add_argument(
        "--json", action="store_true", help="print a JSON object for each alert and each stop"
    )
    replay.add_argument(
        "--set", action="append", default=[], metavar="thrash.NAME=VALUE", help="another number for the rule"
    )
    replay.set_defaults(command=_replay)
    verify = commands.add_parser(
        "verify",
        help="say whether a run has delivered, check by check, and keep that",
        epilog="Exit code: 0 if the run delivered, 1 if not, 2 if it was asked wrongly, the watch list is"
        " wrong, or what it runs is not approved yet. What was pinned counts, whatever the watch list says."
        " Without a watch list, the last word is the PATH of an output; a NAME before it is only for the history.",
    )
    verify.add_argument("name", nargs="?", metavar="NAME", help="a workflow of the watch list")
    verify.add_argument("path", nargs="?", metavar="PATH", help="its output, in place of the newest")
    verify.add_argument("--run", metavar="ID", help="your own id of the run")
    approve = commands.add_parser(
        "approve",
        help="show how the workflows of the watch list differ from what is pinned; where no bot runs, approve them",
        epilog="Exit code: 0 if it counts now or nothing differs, 1 if something does or the database cannot be used, 2 if"
        " it was asked wrongly, if the watch list is wrong, or if a bot has ever looked at it: then it is approved in the"
        " chat.",
    )
    approve.add_argument(
        "names",
        nargs="*",
        metavar="NAME",
        help="a workflow; without one, all are shown and nothing is pinned",
    )
    approve.add_argument(
        "--remove", action="store_true", help="take NAME out of force, which the watch list has no longer"
    )
    approve.set_defaults(command=_approve)
    selftest = commands.add_parser(
        "selftest",
        help="say whether bad outputs, made on purpose, are noticed, and keep that",
        epilog="Exit code: 0 if all were noticed, 1 if one was not or not all could be tried, 2 if it was asked wrongly"
        " or the watch list is wrong. No workflow's command is run.",
    )
    selftest.add_argument("names", nargs="*", metavar="NAME", help="a workflow; without one, all of them")
    selftest.set_defaults(command=_selftest)
    digest = commands.add_parser(
        "digest", help="print what was counted of the week so far, or of the last weeks; draw it with --png"
    )
    digest.add_argument(
        "weeks",
        nargs="?",
        type=_weeks,
        default=1,
        metavar="WEEKS",
        help="up to now, the one that goes on included",
    )
    digest.add_argument("--png", metavar="FILE", help="write the picture into this file")
    digest.set_defaults(command=_digest)
    hook = commands.add_parser("hook", help="keep a call of which an agent's own hook tells; says nothing")
    hook.add_argument("program", metavar="PROGRAM", help="claude-code, codex, gemini-cli or opencode")
    health = commands.add_parser("health", help="say whether the scans and the polls go on; for HEALTHCHECK")
    health.set_defaults(command=_health)
    demo = commands.add_parser("demo", help="try everything in this terminal, without a token")
    demo.add_argument(
        "--unattended", action="store_true", help="play it without a keyboard; exit 0 only if it worked"
    )
    demo.set_defaults(command=_demo)
    return parser


def _verify(arguments: Sequence[str]) -> int:
    # Little garbage comes of it, and looking for some takes longer than the checks do.
    gc.disable()
    try:
        from bot.verifying import verify

        return verify(arguments)
    except KeyboardInterrupt:
        return 130
    finally:
        gc.freeze()  # as below: or it would look for garbage at the exit
        gc.enable()


def _run(_: argparse.Namespace) -> int:
    from bot.settings import Settings, SettingsError, load

    try:
        settings = load(Settings)
    except SettingsError as error:
        return _complain("the settings are wrong", error, 2)
    from bot.app import open_app
    from bot.logs import configure_logging
    from jobs.store.schema import StoreError
    from jobs.watchlist.error import WatchlistError

    async def guard(stop: asyncio.Event) -> None:
        async with open_app(settings) as app:
            await app.run(stop)

    configure_logging(settings.log_format)
    # What was imported stays. The collector's last look at it all would take most of the time that an exit takes.
    gc.freeze()
    try:
        _until_signalled(guard)
    except SettingsError as error:
        return _complain("the settings are wrong", error, 2)
    except WatchlistError as error:
        return _complain("the watch list is wrong", error, 2)
    except StoreError as error:
        return _complain("the database cannot be used", error, 1)
    return 0


def _setup(_: argparse.Namespace) -> int:
    from bot.settings import SettingsError, TelegramSettings, load

    try:
        settings = load(TelegramSettings)
    except SettingsError as error:
        return _complain("the settings are wrong", error, 2)
    from bot.setup import SetupError, show_ids

    try:
        _until_signalled(lambda stop: show_ids(settings, stop))
    except SetupError as error:
        return _complain("no ids can be shown", error, 1)
    return 0


def _check(_: argparse.Namespace) -> int:
    if sys.stdout.isatty():
        sys.stdout.write(
            "Looking at everything that `loopwarden run` needs; loading takes a few seconds ...\n"
        )
        sys.stdout.flush()
    import asyncio

    from bot.checking.runner import check

    return asyncio.run(check(sys.stdout))


def _sources(_: argparse.Namespace) -> int:
    from bot.discovering import show_sources

    return show_sources()


def _replay(options: argparse.Namespace) -> int:
    from bot.replaying import replay
    from bot.settings import SettingsError

    try:
        return replay(options.paths, options.format, options.set, is_json=options.json)
    except SettingsError as error:
        return _complain("that cannot be replayed", error, 2)


def _approve(options: argparse.Namespace) -> int:
    from bot.approving import approve

    return approve(options.names, is_removal=options.remove)


def _selftest(options: argparse.Namespace) -> int:
    from bot.selftesting import selftest

    return selftest(options.names)


def _weeks(text: str) -> int:
    import argparse

    from bot.commands import MOST_WEEKS

    try:
        weeks = int(text)
    except ValueError:
        weeks = 0
    if not 0 < weeks <= MOST_WEEKS:
        raise argparse.ArgumentTypeError(f"a number from 1 to {MOST_WEEKS} is expected")
    return weeks


def _digest(options: argparse.Namespace) -> int:
    from bot.digesting import digest

    return digest(options.weeks, options.png)


def _health(_: argparse.Namespace) -> int:
    from bot.health import health

    return health()


def _demo(options: argparse.Namespace) -> int:
    sys.stdout.write(
        "Loopwarden demo: two real toy agents, one of them stuck. Loading the bot takes a few seconds ...\n"
    )
    sys.stdout.flush()
    import asyncio

    from bot.demo.story import play

    try:
        return asyncio.run(play(unattended=options.unattended))
    except asyncio.CancelledError:
        return 143  # as a shell says that SIGTERM ended it


def _until_signalled(work: Callable[[asyncio.Event], Awaitable[None]]) -> None:
    """Run `work` with an event that SIGTERM and SIGINT set."""
    import asyncio
    import signal

    async def run() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, stop.set)
        await work(stop)

    asyncio.run(run())


def _complain(what: str, error: Exception, code: int) -> int:
    sys.stderr.write(f"loopwarden: {what}:\n{error}\n")
    return code


if __name__ == "__main__":
    sys.exit(main())

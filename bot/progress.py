"""How far a command has come, on a terminal only: on standard error, and gone once it is done."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, TextColumn


@contextmanager
def progress(
    doing: str, total: int, *amounts: ProgressColumn, is_shown: bool = True
) -> Iterator[Callable[[int], None]]:
    """Yield what is to be told how much of the total is done; `amounts` say it beside the bar."""
    console = Console(stderr=True)
    columns = (TextColumn(doing), BarColumn(), *amounts)
    with Progress(
        *columns, console=console, transient=True, disable=not (is_shown and console.is_terminal)
    ) as bar:
        task = bar.add_task("", total=total)
        yield lambda done: bar.update(task, completed=done)

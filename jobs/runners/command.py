"""Runs the command of a workflow's checks, and waits for it."""

import os
import selectors
import subprocess
from dataclasses import dataclass
from time import monotonic, sleep
from typing import Final

from jobs.approved_copies import ApprovedCopies, NotApprovedError, ToRun, to_run
from jobs.program.argv import UnsafeArgumentError, fill_in
from jobs.program.environment import environment
from jobs.program.group import end, has_ended, started
from jobs.program.wording import ended, last_line, not_started, overrun
from jobs.verification.checks import Ran
from jobs.verification.spec import CommandCheck, Names

_KEPT: Final = 4096
"""Bytes of output."""
_READ: Final = 1 << 16
_LOOK: Final = 0.05
"""Seconds between two looks whether a silent command has ended: something it started may keep its output open."""


@dataclass(frozen=True, slots=True)
class ProcessRunner:
    """Runs a command without a shell, for a limited time; then whatever is left of its process group is killed."""

    copies: ApprovedCopies | None = None

    def run(self, command: CommandCheck, workflow: str, names: Names, path: str) -> Ran:
        """Run it on the output at `path` and wait for its end. Never raises for what the command does."""
        start = monotonic()
        values = {"path": path, "workflow": workflow, "run": names.run or "", "date": names.date}
        is_refused, note = False, ""
        try:
            argv = fill_in(command.argv, values)
            what = to_run(argv, command.argv, command.folder, command.files, self.copies)
            note = what.note
            return _run(what, command, start)
        except NotApprovedError as other:
            trouble, is_refused = str(other), True
        except UnsafeArgumentError as unsafe:
            trouble = str(unsafe)
        except OSError as error:
            trouble = not_started(command.argv[0], error)
        return Ran(exit=None, trouble=trouble, is_refused=is_refused, note=note, took=monotonic() - start)


def _run(what: ToRun, command: CommandCheck, start: float) -> Ran:
    with started(
        what.argv,
        environment(),
        program=what.program,
        stdin=subprocess.DEVNULL,
        stderr=subprocess.STDOUT,
        folder=command.folder,
    ) as program:
        output = _listen(program, start + command.timeout)
        in_time = _ends(program, start + command.timeout)
        end(program)
    has_exit = in_time and program.returncode >= 0
    trouble = ended(program.returncode) if in_time else overrun(program.returncode, command.timeout)
    return Ran(
        exit=program.returncode if has_exit else None,
        trouble=None if has_exit else trouble,
        note=what.note,
        last_line=last_line(output),
        took=monotonic() - start,
    )


def _listen(program: subprocess.Popen[bytes], deadline: float) -> bytes:
    """Return the end of what the program and those it started write, until it has ended and nothing is left to read."""
    kept, pipe = b"", _pipe(program)
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        while (left := deadline - monotonic()) > 0:
            # Asked before looking: what it wrote before its end is seen then.
            is_over = has_ended(program)
            is_ready = bool(selector.select(0 if is_over else min(left, _LOOK)))
            piece = os.read(pipe, _READ) if is_ready else b""
            if not piece and (is_ready or is_over):
                break
            kept = (kept + piece)[-_KEPT:]
    return kept


def _pipe(program: subprocess.Popen[bytes]) -> int:
    if program.stdout is None:
        raise AssertionError("asked for when it was started")
    return program.stdout.fileno()


def _ends(program: subprocess.Popen[bytes], deadline: float) -> bool:
    while not has_ended(program):
        if (left := deadline - monotonic()) <= 0:
            return False
        sleep(min(left, _LOOK))
    return True

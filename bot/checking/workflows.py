"""The workflows: can their outputs be found and read, would their commands start, do their schemas load? Nothing is judged."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from bot.checking.data import may
from bot.checking.finding import Finding, error, fine, foreign, warning
from bot.checking.programs import check_program
from bot.views.measure import amount, span
from jobs.artifacts.find import FoundOutputs
from jobs.artifacts.schema import flaw_of_schema
from jobs.verification.history import Report, Trigger
from jobs.verification.identity import names_of
from jobs.verification.spec import WorkflowSpec

_MAGIC: Final = re.compile(r"[*?\[{]")
_ESCAPED: Final = re.compile(r"\[([*?\[{])\]")


def check_workflow(spec: WorkflowSpec, now: float, zone: ZoneInfo) -> Iterator[Finding]:
    """Look at what a run of a workflow would be judged by."""
    subject = f"workflow {foreign(spec.name)}"
    yield _check_output(subject, spec, now, zone)
    if spec.schema is not None and (flaw := flaw_of_schema(spec.schema)):
        yield error(subject, foreign(flaw, 300), "correct `schema`, or the file that it names")
    if spec.command and (wrong := check_program(subject, spec.command.argv[0])):
        yield wrong


def _check_output(subject: str, spec: WorkflowSpec, now: float, zone: ZoneInfo) -> Finding:
    folder = _folder_of(spec.output)
    shown = foreign(folder)
    if not os.path.exists(folder):  # noqa: PTH110 - Path's own raises where a folder above is closed
        mend = "nothing to do if the first run makes it; else correct `output`, or let this user see it"
        return warning(subject, f"its output's folder {shown} is not there", mend)
    if not os.path.isdir(folder):  # noqa: PTH112 - likewise
        return error(subject, f"its output's folder {shown} is none", "correct `output`")
    if not may(Path(folder), os.R_OK | os.X_OK):
        return error(subject, f"its output's folder {shown} is closed to this user", "let this user read it")
    names = names_of(spec, Report(workflow=spec.name, by=Trigger.CHAT, at=now), zone)
    newest = FoundOutputs().newest(spec, names)
    if newest is None:
        return fine(subject, f"no output in {shown} yet")
    path = foreign(newest.path)
    if not may(Path(newest.path), os.R_OK):
        return error(
            subject, f"its newest output {path} may not be read by this user", "let this user read it"
        )
    age = span(now - newest.mtime_ns / 1e9)
    return fine(subject, f"newest output {path}, {amount(newest.size)} bytes, {age} old")


def _folder_of(output: str) -> str:
    """Return the folder in which a pattern begins to be one."""
    parts: list[str] = []
    for part in output.split("/")[:-1]:
        if _MAGIC.search(_ESCAPED.sub("", part)):
            break
        parts.append(_ESCAPED.sub(r"\1", part))
    return "/".join(parts) or "/"

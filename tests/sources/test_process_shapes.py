"""A format's `process` finds the program's own process by its command line, and nothing beside it."""

import re

import pytest

from jobs.sources.registry import FORMATS, HOOKED

MODULES = "/usr/lib/node_modules"
OWN = [
    ("claude-code", "claude"),
    ("claude-code", "/home/me/.local/bin/claude -p Go on. --resume 7d0c2f6e"),
    ("claude-code", "node /usr/bin/claude -p Go on."),
    ("codex", "codex exec Go on."),
    ("codex", f"{MODULES}/@openai/codex/vendor/x86_64-unknown-linux-musl/codex/codex exec resume 01a3"),
    ("codex", "/usr/bin/node /usr/bin/codex exec Go on."),
    ("gemini-cli", "/usr/bin/node --max-old-space-size=7925 /usr/bin/gemini -p Go on."),
    ("gemini-cli", "node --no-warnings --max-old-space-size=7925 --expose-gc /opt/bin/gemini"),
    ("gemini-cli", f"node --max-old-space-size=7925 {MODULES}/@google/gemini-cli/dist/index.js -p Go on."),
    ("opencode", "opencode run -s ses_1 Go on."),
    ("opencode", f"{MODULES}/opencode-ai/bin/.opencode run Go on."),
]
OTHER = [
    ("claude-code", "/bin/bash -c claude -p Go on."),
    ("claude-code", "vim claude"),
    ("claude-code", "claude-delegate"),
    ("claude-code", "/home/me/claude/server.py"),
    ("codex", "codex-code-mode-host"),
    ("codex", "codex app-server"),
    ("codex", "sh -c codex exec Go on."),
    ("gemini-cli", "node /usr/bin/gemini -p Go on."),
    ("gemini-cli", "node /usr/bin/gemini -p --max-old-space-size=1 /gemini"),
    ("gemini-cli", "node --max-old-space-size=7925 /srv/shop/server.js"),
    ("opencode", "opencode serve --port 4096"),
    ("opencode", "opencode web"),
    ("opencode", "/bin/sh -c opencode run"),
]


@pytest.mark.parametrize(("name", "command_line"), OWN)
def test_a_program_is_found_in_every_shape_it_runs_in(name: str, command_line: str) -> None:
    """By its own format's expression, and by no other's."""
    found = [each for each, form in FORMATS.items() if form.process and re.search(form.process, command_line)]
    assert found == [name]


@pytest.mark.parametrize(("name", "command_line"), OTHER)
def test_what_runs_beside_it_is_not_taken_for_it(name: str, command_line: str) -> None:
    """Its commands, its helpers, a launcher that passes no signal on, and servers that hold many sessions."""
    assert re.search(FORMATS[name].process or "", command_line) is None


def test_what_has_a_hook_has_a_process() -> None:
    """Without a pid there is nothing to signal."""
    assert {name for name, form in FORMATS.items() if form.process} == HOOKED

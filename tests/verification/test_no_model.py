"""No model anywhere: what leads to a verdict can reach none, and reaches for none."""

import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, Final

import grimp
import pytest
from grimp import ImportGraph

from jobs.verification.spec import Format
from tests.import_contract import AllowedContract

ROOT = Path(__file__).parents[2]
CONTRACTS: dict[str, dict[str, Any]] = {
    contract["type"]: contract
    for contract in tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    if contract["name"].startswith("no model:")
}
ALLOWED: Final = frozenset(CONTRACTS["allowed"]["allowed_modules"])
FORBIDDEN: Final = frozenset(CONTRACTS["forbidden"]["forbidden_modules"])
OF_JSONSCHEMA: Final = frozenset({"attr", "attrs", "idna", "jsonschema_specifications", "rpds"})
"""What it is made of, and what it uses where it is there."""

JUDGING = """
import sys

def refuse(event, arguments):
    if event.startswith(("socket.", "subprocess.", "urllib.", "os.exec", "os.fork", "os.posix_spawn", "os.system")):
        raise AssertionError(event)

sys.addaudithook(refuse)
before = set(sys.modules)

from jobs.verification.checks import Output, run_checks
from jobs.verification.spec import *
from jobs.verification.verdict import Artifact, Past

data, form = sys.stdin.buffer.read(), Format(sys.argv[1])
spec = WorkflowSpec(format=form, unchanged=True, size=BandSpec(within=1), count=CountSpec(of="status"), forbid=("Traceback",))
if form.has_fields:
    spec = msgspec.structs.replace(spec, required=("status",), status=StatusSpec(), schema="schema.json")
artifact = Artifact(path="report", device=1, inode=1, mtime_ns=0, size=len(data), sha256="")
schema = {"anyOf": [{"$ref": "#/$defs/any"}], "$defs": {"any": {}}}
judged = run_checks(Output(artifact=artifact, data=data), spec, 0.0, Past(), schema=schema)
assert judged.verdict.failure is None, judged
print(*(set(sys.modules) - before))
"""
SAMPLES = {
    Format.JSON: b'{"status": "ok"}',
    Format.JSONL: b'{"status": "ok"}\n',
    Format.CSV: b"status,n\nok,1\n",
    Format.TOML: b'status = "ok"',
    Format.YAML: b"status: ok",
    Format.TEXT: b"ok",
    Format.ANY: b"\xff",
}


@pytest.mark.parametrize("form", Format)
def test_a_run_is_judged_without_a_connection_a_process_or_a_client_of_a_model(form: Format) -> None:
    """In an interpreter of its own, by every check: nothing is imported that is not listed, nothing reaches out."""
    judging = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-c", JUDGING, form],
        input=SAMPLES[form],
        capture_output=True,
        check=False,
        cwd=ROOT,
    )
    assert judging.returncode == 0, judging.stderr.decode()
    imported = set(judging.stdout.decode().split())
    # The parser of YAML is compiled, and brings what it was compiled with.
    distributions = {name.partition(".")[0] for name in imported if "cython" not in name}
    assert {"jobs", "msgspec"} <= distributions
    assert (
        distributions
        <= {"jobs", "bot", "typing_extensions"} | ALLOWED | OF_JSONSCHEMA | sys.stdlib_module_names
    )
    # To take an address apart needs no network.
    assert not (distributions - {"urllib"}) & FORBIDDEN
    assert "urllib.request" not in imported


@pytest.fixture(scope="module")
def graph() -> ImportGraph:
    return grimp.build_graph("bot", "jobs", include_external_packages=True)


def allowed() -> AllowedContract:
    options = {name: CONTRACTS["allowed"][name] for name in ("source_modules", "allowed_modules")}
    return AllowedContract(name="no model", session_options={}, contract_options=options)


def test_the_contracts_cover_all_that_leads_to_a_verdict(graph: ImportGraph) -> None:
    judging = {"jobs.verification", "jobs.artifacts", "jobs.runners", "jobs.recording", "jobs.keeping"}
    calling = {"jobs.run_verification", "jobs.run_watch", "jobs.verifier_selftest", "bot.verifying"}
    for contract in CONTRACTS.values():
        assert set(contract["source_modules"]) == judging | calling
        assert set(contract["source_modules"]) <= graph.modules
    assert {"openai", "anthropic", "litellm", "google", "httpx", "socket"} <= FORBIDDEN
    assert not ALLOWED & FORBIDDEN


def test_nothing_but_what_is_allowed_is_imported(graph: ImportGraph) -> None:
    assert allowed().check(graph, verbose=False).kept


@pytest.mark.parametrize("importer", ["jobs.verification.fields", "jobs.artifacts.judge", "jobs.ports"])
def test_a_client_that_nobody_has_thought_of_is_found_wherever_it_is_imported(
    graph: ImportGraph, importer: str, capsys: pytest.CaptureFixture[str]
) -> None:
    graph.add_module("oracle_client", is_squashed=True)
    graph.add_import(importer=importer, imported="oracle_client")
    try:
        found = allowed().check(graph, verbose=False)
    finally:
        graph.remove_module("oracle_client")
    assert not found.kept
    allowed().render_broken_contract(found)
    assert "leads to oracle_client" in capsys.readouterr().out

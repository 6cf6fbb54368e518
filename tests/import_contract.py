"""A contract for import-linter: modules that import, directly or through others, nothing but what is listed."""

import sys
from typing import cast

from grimp import ImportGraph
from importlinter.application import output
from importlinter.domain import fields
from importlinter.domain.contract import Contract, ContractCheck
from importlinter.domain.imports import Module


class AllowedContract(Contract):
    """Of other distributions only `allowed_modules`; the standard library is not looked at."""

    source_modules = fields.SetField(subfield=fields.ModuleField())
    allowed_modules = fields.SetField(subfield=fields.ModuleField())

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:  # noqa: ARG002 - import-linter calls it so
        allowed = _names(self.allowed_modules) | sys.stdlib_module_names
        found = {
            (source, imported)
            for source in _names(self.source_modules)
            for imported in graph.find_upstream_modules(source, as_package=True)
            if graph.is_module_squashed(imported) and imported not in allowed
        }
        return ContractCheck(kept=not found, metadata={"found": sorted(found)})

    def render_broken_contract(self, check: ContractCheck) -> None:
        for source, imported in check.metadata["found"]:
            output.print_error(f"{source} leads to {imported}, which is not among what it may import")


def _names(modules: object) -> set[str]:
    # What the class has as a description of an option, its instances have as the option's value.
    return {module.name for module in cast("set[Module]", modules)}

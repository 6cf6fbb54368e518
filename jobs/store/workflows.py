"""Table `workflow`: every workflow that was ever watched, and how it stands."""

from collections.abc import Mapping
from dataclasses import replace

from jobs.store.rows import Connection, fetch, insert, update
from jobs.verification.history import WorkflowState


class SqlWorkflows:
    """One row per workflow."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def all(self) -> Mapping[str, WorkflowState]:
        """Return every workflow by its name."""
        found = await fetch(self._connection, WorkflowState, "SELECT * FROM workflow ORDER BY name")
        return {state.name: state for state in found}

    async def get(self, name: str) -> WorkflowState | None:
        """Return one workflow."""
        sql = "SELECT * FROM workflow WHERE name = ?"
        return next(iter(await fetch(self._connection, WorkflowState, sql, (name,))), None)

    async def by_id(self, workflow_id: int) -> WorkflowState | None:
        """Return the workflow that a button means."""
        sql = "SELECT * FROM workflow WHERE id = ?"
        return next(iter(await fetch(self._connection, WorkflowState, sql, (workflow_id,))), None)

    async def save(self, state: WorkflowState) -> WorkflowState:
        """Insert a workflow whose id is 0, else overwrite it; return it with its id."""
        if state.id:
            await update(self._connection, "workflow", state, state.id)
            return state
        return replace(state, id=await insert(self._connection, "workflow", state))

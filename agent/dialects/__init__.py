"""How the engine speaks with models. One file a dialect; see `agent.dialects.base` for what they have in common."""

from agent.dialects.base import Dialect
from agent.dialects.json import JsonDialect
from agent.dialects.react import ReactDialect
from agent.dialects.tools import ToolsDialect
from agent.errors import AgentDefinitionError

DIALECTS: dict[str, Dialect] = {dialect.name: dialect for dialect in (ToolsDialect(), JsonDialect(), ReactDialect())}


def dialect_of(dialect: str | Dialect) -> Dialect:
    """The dialect of that name, or the dialect itself.

    Raises:
        AgentDefinitionError: There is none; the message names those that are there.
    """
    if not isinstance(dialect, str):
        return dialect
    if dialect not in DIALECTS:
        raise AgentDefinitionError(f"dialect {dialect!r} is not known; there are {', '.join(sorted(DIALECTS))}")
    return DIALECTS[dialect]

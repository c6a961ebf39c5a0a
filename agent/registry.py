"""The tools that an agent may use, by name."""

from collections.abc import Callable, Iterable

from agent.errors import AgentDefinitionError
from agent.tools import Tool, tool_of


class ActionRegistry:
    """A set of tools with distinct names. Several agents may share one, or copies of it.

    Attributes:
        tools: By name, in the order of registration.
    """

    def __init__(self, actions: "Iterable[Callable[..., object] | Tool]" = ()) -> None:
        self.tools: dict[str, Tool] = {}
        for action in actions:
            self.register(action)

    def register(self, action: "Callable[..., object] | Tool", terminal: bool | None = None) -> None:
        """Adds a function, a decorated function or a tool.

        Args:
            action: What to add. It is never changed.
            terminal: Whether its result ends the run, here; None leaves it as the tool says.

        Raises:
            ToolDefinitionError: The function cannot be a tool.
            AgentDefinitionError: There is a tool of that name.
        """
        tool = tool_of(action)
        if tool.name in self.tools:
            raise AgentDefinitionError(
                f"there are two tools named {tool.name!r}; give one of them another name with name=..."
            )
        if terminal is not None and terminal != tool.terminal:
            tool = tool.model_copy(update={"terminal": terminal})
        self.tools[tool.name] = tool

    register_tool = register

    def get_tool(self, name: str) -> Tool | None:
        """The tool of that name, or None."""
        return self.tools.get(name)

    def get_tools_schema(self) -> list[dict[str, object]]:
        """What a model is told of all tools, in the format of OpenAI."""
        return [tool.definition() for tool in self.tools.values()]

    def tagged(self, *tags: str) -> list[Tool]:
        """The tools that carry at least one of the tags."""
        return [tool for tool in self.tools.values() if not set(tags).isdisjoint(tool.tags or ())]

    def copy(self) -> "ActionRegistry":
        """Another registry with the same tools; what is registered in one does not show in the other."""
        return ActionRegistry(self.tools.values())

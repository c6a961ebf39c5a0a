"""Agent cards: what workers publish of an agent, so that a client needs none of its code."""

from collections.abc import Mapping

from pydantic import BaseModel, ConfigDict, ValidationError

from agent.agent import Agent
from agent.arguments import SchemaArguments
from agent.budget import Budget
from agent.errors import BrokenRecord, ConfigurationError, Conflict, InvalidArguments, UnknownPriceError


class ToolCard(BaseModel):
    """A tool as the model sees it."""

    model_config = ConfigDict(frozen=True)

    name: str
    description: str = ""
    parameters: dict[str, object] = {}
    terminal: bool = False
    idempotent: bool = False


class AgentCard(BaseModel):
    """What there is to know of an agent without its code.

    Attributes:
        output_schema: JSON Schema of the result; None where an own terminal tool gives it.
        priced: Whether its model's price is known, so that `max_cost_usd` can bite.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: str
    goal: str = ""
    version: str = ""
    model: str = ""
    dialect: str = "tools"
    queue: str = "default"
    priced: bool = False
    budget: Budget = Budget()
    tools: tuple[ToolCard, ...] = ()
    output_schema: dict[str, object] | None = None

    @classmethod
    def of(cls, agent: Agent[object]) -> "AgentCard":
        """The card of an agent that has a name.

        Raises:
            AgentDefinitionError: It has no model.
            UnknownPriceError: Its own limit of cost could never bite.
        """
        program = agent.program()
        built_in = agent.output is not None
        card = cls(
            name=program.name,
            goal=agent.goal[:2000],
            version=agent.version,
            model=program.model.name,
            dialect=program.dialect.name,
            queue=agent.queue,
            priced=program.model.price is not None,
            budget=agent.budget,
            tools=tuple(
                ToolCard(
                    name=tool.name,
                    description=tool.description,
                    parameters=dict(tool.parameters),
                    terminal=tool.terminal,
                    idempotent=tool.idempotent,
                )
                for tool in agent.registry.tools.values()
            ),
            output_schema=dict(program.exit_specification.parameters) if built_in else None,
        )
        card.check(agent.budget, None)
        return card

    @classmethod
    def of_bytes(cls, data: bytes) -> "AgentCard":
        """The card that was published.

        Raises:
            BrokenRecord: It cannot be read.
        """
        try:
            return cls.model_validate_json(data)
        except ValidationError as error:
            raise BrokenRecord(f"an agent card cannot be read: {error.error_count()} errors") from error

    def check_arguments(self, tool: str, arguments: Mapping[str, object]) -> None:
        """Refuses arguments that do not fit a tool. Those of a tool that the card lacks are left to the worker.

        Raises:
            ConfigurationError: Says what does not fit, and what there is.
        """
        for card in self.tools:
            if card.name == tool:
                try:
                    checked = SchemaArguments(card.parameters)
                except ValueError:  # only pydantic can read this schema: a pattern, say
                    return
                try:
                    checked.values(arguments)
                except InvalidArguments as problem:
                    raise ConfigurationError(f"The arguments do not fit {tool}: {problem}") from problem

    def check(self, budget: Budget, queue: str | None) -> None:
        """Refuses a submission that this agent could not carry out.

        Raises:
            UnknownPriceError: A money limit that could never bite.
            Conflict: Another queue than the one that its workers serve.
        """
        if budget.max_cost_usd is not None and not self.priced:
            raise UnknownPriceError(
                f"max_cost_usd is set, but no price is known for {self.model}, the model of agent {self.name!r}; "
                "give the model a price=Price(...) where the agent is declared, or leave out max_cost_usd"
            )
        if queue is not None and queue not in (self.queue, "high", "low"):
            raise Conflict(f"agent {self.name!r} is served from queue {self.queue!r}, not {queue!r}")

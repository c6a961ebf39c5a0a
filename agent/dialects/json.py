"""The dialect of forced JSON, for servers and small models without tool calling. Pure.

The whole reply is forced through `response_format` into one JSON object: a tool call, or the arguments of the exit. An agent
without tools has nothing but the exit, so that its output schema alone is the reply's schema.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, cast

from agent.dialects.base import Asking, Calls, Declined, Reading, Unusable, joined, text_of, with_note
from agent.dialects.calls import decode, read_calls
from agent.dialects.forms import form_of
from agent.dialects.tools import CUT, EMPTY, FILTERED
from agent.messages import Message, Role
from agent.models.base import ModelReply, ModelRequest, RawToolCall, ToolSpecification
from agent.models.finish_reasons import FinishKind, finish_kind
from agent.text import well_formed, without_fence
from agent.tokens import estimate

if TYPE_CHECKING:
    from agent.program import Program

NO_OBJECT = "Your reply was not one JSON object of the form that was asked for. Reply with nothing else."
NO_CALL = (
    'Your reply was not one JSON object of the form {"tool": "<name>", "arguments": {…}}. Reply with nothing else.'
)


class JsonDialect:
    """One JSON object a reply."""

    name = "json"

    def request(self, program: "Program", messages: Sequence[Message], asking: Asking) -> ModelRequest:
        """The instruction with the tools in words, the history as plain turns, and the schema of the reply."""
        offered = (program.exit_specification,) if asking.last else program.specifications
        system = Message(role=Role.SYSTEM, content=instruction(program))
        turns = joined(system, [_as_turn(message, program) for message in _without_refused(messages)])
        return ModelRequest(
            messages=with_note(turns, asking, "This is your last reply: give the best result you have."),
            response_schema=reply_schema(offered, program),
            max_tokens=asking.max_tokens,
            temperature=program.temperature,
            timeout=asking.timeout,
            run_id=asking.run_id,
            step=asking.step,
            attempt=asking.attempt,
        )

    def read(self, reply: ModelReply, program: "Program", asking: Asking) -> Reading:
        """The one call that the object says. A cut object is never half an answer, not even the last one."""
        if reply.refusal:
            return Declined(well_formed(reply.refusal))
        text, kind = text_of(reply), finish_kind(reply.finish_reason)
        if kind is FinishKind.FILTERED:
            return Declined(text or FILTERED)
        if not text:
            return Unusable("cut_off", CUT) if kind is FinishKind.LENGTH else Unusable("empty_reply", EMPTY)
        only_exit = asking.last or has_only_exit(program)
        wanted = NO_OBJECT if only_exit else NO_CALL
        try:
            value = decode(without_fence(text))
        except (json.JSONDecodeError, RecursionError):
            cut = kind is FinishKind.LENGTH
            return Unusable("cut_off", CUT, text) if cut else Unusable("unusable_reply", wanted, text)
        except ValueError as problem:
            return Unusable("unusable_reply", f"{wanted}\n{problem}", text)
        raw = _call_of(value, program, only_exit=only_exit)
        if raw is None:
            return Unusable("unusable_reply", wanted, text)
        return Calls(read_calls([raw], step=asking.step, finish_reason=reply.finish_reason))

    def overhead(self, program: "Program") -> int:
        """The instruction, which holds all tools."""
        return estimate(instruction(program))


def has_only_exit(program: "Program") -> bool:
    """Whether the agent has no tools, so that a reply is nothing but the result."""
    return len(program.specifications) == 1


def instruction(program: "Program") -> str:
    """The goal, the tools in words, and the form of a reply."""
    goal = program.instruction.content or ""
    if has_only_exit(program):
        form = form_of(program.exit_specification.parameters)
        return f"{goal}\n\nReply with one JSON object of this form, and nothing else:\n{form}"
    tools = "\n".join(
        f"- {tool.name}: {tool.description}\n  arguments: {form_of(tool.parameters, indent='  ')}"
        for tool in program.specifications
    )
    return (
        f"{goal}\n\nYou work by calling one tool a turn. Tools:\n{tools}\n\n"
        f'Reply with one JSON object {{"tool": "<name>", "arguments": {{…}}}} and nothing else. '
        f"Call `{program.exit.name}` once the task is done."
    )


def reply_schema(offered: Sequence[ToolSpecification], program: "Program") -> Mapping[str, object]:
    """The schema that a reply is forced into: any one of the offered calls, or the exit's arguments alone.

    Its definitions are at the root, where servers look for them.
    """
    if len(offered) == 1 and offered[0].name == program.exit.name:
        return offered[0].parameters
    definitions: dict[str, object] = {}
    variants = [
        {
            "type": "object",
            "properties": {"tool": {"type": "string", "enum": [tool.name]}, "arguments": _hoisted(tool, definitions)},
            "required": ["tool", "arguments"],
            "additionalProperties": False,
        }
        for tool in offered
    ]
    return {"anyOf": variants} | ({"$defs": definitions} if definitions else {})


def _hoisted(tool: ToolSpecification, definitions: dict[str, object]) -> object:
    """The tool's parameters with their `$defs` moved to the root under names of the tool's own."""

    def rewritten(node: object) -> object:
        match node:
            case dict():
                mapping = cast("dict[str, object]", node)
                return {key: rewritten(value) for key, value in mapping.items()}
            case list():
                return [rewritten(item) for item in cast("list[object]", node)]
            case str():  # a reference, or an entry of a discriminator's mapping
                return re.sub(r"^#/\$defs/", f"#/$defs/{tool.name}.", node)
            case _:
                return node

    own = cast("Mapping[str, object]", tool.parameters.get("$defs", {}))
    definitions.update({f"{tool.name}.{name}": rewritten(schema) for name, schema in own.items()})
    return rewritten({key: value for key, value in tool.parameters.items() if key != "$defs"})


def _without_refused(messages: Sequence[Message]) -> Iterator[Message]:
    """The messages without the replies that were refused: a small model that sees them says the same again."""
    for index, message in enumerate(messages):
        answers = messages[index + 1 : index + 1 + max(len(message.tool_calls), 1)]
        if message.role is not Role.ASSISTANT or not answers or not all(answer.refuses for answer in answers):
            yield message


def _as_turn(message: Message, program: "Program") -> Message:
    """A message as a model without tool calling knows turns: only system, user and assistant speak."""
    if message.role is Role.TOOL and message.refuses:
        what = "Your reply" if has_only_exit(program) else f"Your call of {message.name}"
        return Message(
            role=Role.USER, content=f"{what} was refused:\n{message.content}\nReply again, with that put right."
        )
    if message.role is Role.TOOL:
        return Message(role=Role.USER, content=f"Result of {message.name}:\n{message.content}")
    if not message.tool_calls:
        return message
    only_exit = has_only_exit(program)
    objects = (
        call.arguments if only_exit else f'{{"tool": {json.dumps(call.name)}, "arguments": {call.arguments}}}'
        for call in message.tool_calls
    )
    return Message(role=Role.ASSISTANT, content="\n".join(objects))


def _call_of(value: object, program: "Program", *, only_exit: bool) -> RawToolCall | None:
    """The call that an object says; where there is nothing but the exit, the object is the exit's arguments."""
    if not isinstance(value, dict):
        return None
    fields = cast("dict[str, object]", value)
    name, arguments = fields.get("tool"), fields.get("arguments")
    is_call = isinstance(name, str) and isinstance(arguments, dict) and set(fields) == {"tool", "arguments"}
    if is_call and not (only_exit and name not in program.registry.tools):
        return RawToolCall(name=str(name), arguments=cast("dict[str, object]", arguments))
    return RawToolCall(name=program.exit.name, arguments=fields) if only_exit else None

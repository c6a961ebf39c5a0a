"""The dialect of ReAct, for any model that writes text: thoughts, actions and observations behind strict labels. Pure.

The model writes `Thought:`, `Action:` and `Action Input:`; what the tool answered comes back as `Observation:`, until the model
writes `Final Answer:`. The history keeps the thought and the call, so that what a model made up beyond them was never said.
"""

import json
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from agent.dialects import react_text
from agent.dialects.base import Asking, Calls, Declined, Reading, Unusable, joined, text_of, with_note
from agent.dialects.base import Final as FinalText
from agent.dialects.calls import read_calls
from agent.dialects.react_text import Action, Answer, Unlabelled
from agent.dialects.tools import CUT, read_spoiled, read_unfinished
from agent.dialects.written_calls import written_calls
from agent.messages import Message, Role
from agent.models.base import ModelReply, ModelRequest, RawToolCall, ToolSpecification
from agent.models.finish_reasons import FinishKind, finish_kind
from agent.text import well_formed
from agent.tokens import estimate

if TYPE_CHECKING:
    from agent.program import Program

OBSERVATION: Final = "Observation:"

NO_LABEL: Final = (
    "Your reply has neither an action nor a final answer in the asked format, so that nothing was done. Begin lines with "
    "`Thought:`, then `Action:` and `Action Input:`; or, once you know the answer, with `Final Answer:`."
)
NO_INPUT: Final = (
    "The action has no input, so that nothing was done. Write `Action Input:` below `Action:`, with the arguments as a JSON "
    "object behind it."
)


class ReactDialect:
    """Labels in plain text."""

    name = "react"

    def request(self, program: "Program", messages: Sequence[Message], asking: Asking) -> ModelRequest:
        """The rules with the tools in words, and the history as plain turns. The model stops where it would observe."""
        system = Message(role=Role.SYSTEM, content=instruction(program))
        turns = joined(system, [_as_turn(message, program) for message in messages])
        return ModelRequest(
            messages=with_note(turns, asking, f"This is your last reply: {_last_words(program)}"),
            stop=(f"\n{OBSERVATION}",),
            max_tokens=asking.max_tokens,
            temperature=program.temperature,
            timeout=asking.timeout,
            run_id=asking.run_id,
            step=asking.step,
            attempt=asking.attempt,
        )

    def read(self, reply: ModelReply, program: "Program", asking: Asking) -> Reading:
        """The first action, or the final answer; a reply without either is asked for again."""
        if reply.refusal:
            return Declined(well_formed(reply.refusal))
        text, kind = text_of(reply), finish_kind(reply.finish_reason)
        if reply.tool_calls:
            return _calls(reply.tool_calls, text, reply, asking)
        spoiled = read_spoiled(text, kind)
        if spoiled is not None:
            return spoiled
        cut = kind is FinishKind.LENGTH  # an action may be whole although the reply was cut
        match react_text.read(text, program.registry.tools):
            case Action(thought=thought, name=name, arguments=None) if _takes_input(name, program):
                kept = f"{thought}\nAction: {name}".strip()
                return Unusable("cut_off", CUT, kept) if cut else Unusable("unusable_reply", NO_INPUT, kept)
            case Action(thought=thought, name=name, arguments=arguments):
                return _calls([RawToolCall(name, arguments)], thought, reply, asking)
            case Answer(text=kept, answer=answer):
                unfinished = None if asking.last else read_unfinished(kept, kind, asking)
                return unfinished or FinalText(kept, _plain(answer, program))
            case Unlabelled(text=kept):
                written = written_calls(kept, program.registry.tools)
                if written is not None and written.calls:
                    return _calls(written.calls, written.before, reply, asking)
                return (
                    Unusable("cut_off", CUT, kept or None)
                    if cut
                    else Unusable("unusable_reply", NO_LABEL, kept or None)
                )

    def overhead(self, program: "Program") -> int:
        """The instruction, which holds all tools."""
        return estimate(instruction(program))


def instruction(program: "Program") -> str:
    """The goal, the labels, and the tools as indented JSON."""
    goal = program.instruction.content or ""
    tools = [tool for tool in program.specifications if program.output is None or tool.name != program.exit.name]
    lines = ["Thought: what you think now"]
    if tools:
        lines += [
            f"Action: the name of the tool to use, one of {json.dumps([tool.name for tool in tools], ensure_ascii=False)}",
            "Action Input: the arguments of the tool, as a JSON object",
            f"{OBSERVATION} never write this yourself; the system fills in what the tool answers",
            "... Thought/Action/Action Input/Observation, one action at a time, until you know the answer",
        ]
    lines.append(_end(program))
    rules = "\n".join(lines)
    listed = json.dumps([_listed(tool) for tool in tools], ensure_ascii=False, indent=2)
    return f"{goal}\n\nAnswer strictly in this format:\n\n{rules}" + (f"\n\nThe tools:\n{listed}" if tools else "")


def _end(program: "Program") -> str:
    """The line by which a task is ended."""
    if program.output is None:
        return f"... once the task is done, use the tool {program.exit.name}"
    if program.output.is_text:
        return "Final Answer: the answer for the user"
    schema = json.dumps(program.output.schema, ensure_ascii=False)
    return f"Final Answer: the result, as JSON that fits this JSON Schema: {schema}"


def _last_words(program: "Program") -> str:
    if program.output is None:
        return f"use the tool {program.exit.name} now, with the best result you have."
    return "write `Final Answer:` now, with the best result you have."


def _listed(tool: ToolSpecification) -> dict[str, object]:
    return {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}


def _takes_input(name: str, program: "Program") -> bool:
    tool = program.registry.get_tool(name)
    return tool is not None and bool(tool.parameters.get("properties") or tool.parameters.get("additionalProperties"))


def _calls(raw: Sequence[RawToolCall], text: str | None, reply: ModelReply, asking: Asking) -> Calls:
    return Calls(read_calls(raw, step=asking.step, finish_reason=reply.finish_reason), text or None)


def _plain(answer: str, program: "Program") -> str:
    """The answer, or the JSON that it begins with where the result is no text."""
    if program.output is None or program.output.is_text:
        return answer
    value = react_text.leading_value(answer)
    return answer if value is None else json.dumps(value, ensure_ascii=False)


def _as_turn(message: Message, program: "Program") -> Message:
    """A message as a model that only writes text knows turns: only system, user and assistant speak."""
    if message.role is Role.TOOL:
        return Message(role=Role.USER, content=f"{OBSERVATION} {message.content}")
    if message.role is not Role.ASSISTANT or not message.tool_calls:
        return message
    return Message(role=Role.ASSISTANT, content="\n".join(_lines(message, program)))


def _lines(message: Message, program: "Program") -> Iterator[str]:
    """What a turn said, and its calls as actions; the call of an answer that is written out already is none."""
    answered = False
    if message.content:
        yield message.content
        answered = isinstance(react_text.read(message.content, ()), Answer)
    for call in message.tool_calls:
        if not (answered and call.name == program.exit.name):
            yield f"Action: {call.name}\nAction Input: {call.arguments}"

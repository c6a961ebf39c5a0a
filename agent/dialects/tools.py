"""The dialect of function calling: tools go to the model as schemas, calls come back as structure. Pure."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from agent.dialects.base import Asking, Calls, Declined, Final, Reading, Unusable, joined, text_of, with_note
from agent.dialects.calls import decode, read_calls
from agent.dialects.written_calls import written_calls
from agent.errors import InvalidArguments
from agent.messages import Message
from agent.models.base import ModelReply, ModelRequest
from agent.models.finish_reasons import FinishKind, finish_kind
from agent.text import well_formed, without_fence
from agent.tokens import estimate

if TYPE_CHECKING:
    from agent.program import Program

EMPTY = "Your reply was empty. Go on with the task: call a tool, or give your final answer."
CUT = "Your reply was cut off by the output limit. Say it again, shorter."
BROKEN = "Your reply broke off before its end. Say it again."
UNFINISHED = "Your turn ended before it was finished. Go on with the task: call a tool, or give your final answer."
NOT_CALLED = "Your reply announces a call but holds none, so that nothing was executed. Call the tool, or give your final answer."
FILTERED = "The provider's filter held the reply back."
MALFORMED = "Your tool call could not be read. Send it again, as valid JSON that fits the tool's schema."


class ToolsDialect:
    """Function calling, as OpenAI-compatible servers know it."""

    name = "tools"

    def request(self, program: "Program", messages: Sequence[Message], asking: Asking) -> ModelRequest:
        """The instruction, the history and the tools; at the last answer only the exit."""
        last_words = f"This is your last reply: call `{program.exit.name}` now with the best result you have."
        return ModelRequest(
            messages=with_note(joined(program.instruction, messages), asking, last_words),
            tools=(program.exit_specification,) if asking.last else program.specifications,
            tool_choice=program.exit.name if asking.last else "required",
            max_tokens=asking.max_tokens,
            temperature=program.temperature,
            timeout=asking.timeout,
            run_id=asking.run_id,
            step=asking.step,
            attempt=asking.attempt,
        )

    def read(self, reply: ModelReply, program: "Program", asking: Asking) -> Reading:
        """Calls where there are any, be they written into the text; else the text, where the turn is finished."""
        if reply.refusal:
            return Declined(well_formed(reply.refusal))
        text, kind = text_of(reply), finish_kind(reply.finish_reason)
        if reply.tool_calls:
            return Calls(
                read_calls(reply.tool_calls, step=asking.step, finish_reason=reply.finish_reason), text or None
            )
        spoiled = read_spoiled(text, kind)
        if spoiled is not None:
            return spoiled
        written = written_calls(text, program.registry.tools)
        if written is not None and fits_output(text, program):
            written = None
        if written is not None and written.calls:
            return Calls(read_calls(written.calls, step=asking.step, finish_reason=reply.finish_reason), written.before)
        if written is not None and kind is not FinishKind.LENGTH:
            return Unusable("unusable_reply", MALFORMED, text)
        unfinished = None if asking.last and written is None else read_unfinished(text, kind, asking)
        return unfinished or Final(text, answer=text)

    def overhead(self, program: "Program") -> int:
        """The instruction and all tools."""
        return instruction_tokens(program)


def read_spoiled(text: str, kind: FinishKind) -> Declined | Unusable | None:
    """What a reply means of which nothing can be used; None where something can."""
    match kind:
        case FinishKind.FILTERED:
            return Declined(text or FILTERED)
        case FinishKind.MALFORMED:
            return Unusable("unusable_reply", MALFORMED, text or None)
        case FinishKind.FAILED:
            return Unusable("unusable_reply", BROKEN, text or None)
        case _ if text:
            return None
        case FinishKind.LENGTH:
            return Unusable("cut_off", CUT)
        case _:
            return Unusable("empty_reply", EMPTY)


def read_unfinished(text: str, kind: FinishKind, asking: Asking) -> Unusable | None:
    """What a text means that would be the answer had the model been done with it; None where it was.

    A word that is not known here may be the one by which this server always ends a turn, and some servers announce calls
    after every text where calls are required: both are asked about once.
    """
    match kind:
        case FinishKind.LENGTH:
            return Unusable("cut_off", CUT, text)
        case FinishKind.TOOL_CALLS if not asking.reminded:
            return Unusable("unusable_reply", NOT_CALLED, text)
        case FinishKind.PAUSED:
            return Unusable("unusable_reply", UNFINISHED, text)
        case FinishKind.UNKNOWN if not asking.reminded:
            return Unusable("unusable_reply", UNFINISHED, text)
        case _:
            return None


def fits_output(text: str, program: "Program") -> bool:
    """Whether a text that looks like calls is the result all the same, since the output has just these fields.

    A call also fits an output that takes any fields, or leaves out those it does not know; so the output has to name them.
    """
    output = program.output
    if output is None or output.is_text:
        return False
    try:
        value = decode(without_fence(text))
        output.of_text(text)
    except (ValueError, RecursionError, InvalidArguments):
        return False
    names = json.dumps(output.schema)
    items = cast("list[object]", value) if isinstance(value, list) else [value]
    keys = [key for item in items if isinstance(item, dict) for key in cast("dict[str, object]", item)]
    return all(json.dumps(key) in names for key in keys)


def instruction_tokens(program: "Program") -> int:
    """Estimated tokens of the instruction and of the tools' schemas."""
    texts = [program.instruction.content or ""]
    texts += [f"{tool.name}{tool.description}{tool.parameters}" for tool in program.specifications]
    return sum(estimate(text) for text in texts)

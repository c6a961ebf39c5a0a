"""The dialect of function calling: tools go to the model as schemas, calls come back as structure. Pure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from agent.dialects.base import Asking, Calls, Declined, Final, Reading, Unusable, joined, with_note
from agent.dialects.calls import read_calls
from agent.dialects.written_calls import written_calls
from agent.messages import Message
from agent.models.base import ModelReply, ModelRequest
from agent.models.finish_reasons import FinishKind, finish_kind
from agent.text import well_formed
from agent.tokens import estimate

if TYPE_CHECKING:
    from agent.program import Program

EMPTY = "Your reply was empty. Go on with the task: call a tool, or give your final answer."
CUT = "Your reply was cut off by the output limit. Say it again, shorter."
BROKEN = "Your reply broke off before its end. Say it again."
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
        """Calls where there are any, be they written into the text; else the text. An empty or cut one is asked for again."""
        if reply.refusal:
            return Declined(well_formed(reply.refusal))
        text = well_formed(reply.content or "").strip() or None
        if reply.tool_calls:
            return Calls(read_calls(reply.tool_calls, step=asking.step, finish_reason=reply.finish_reason), text)
        reading = read_text(text, reply.finish_reason, last=asking.last)
        written = written_calls(reading.text, program.registry.tools) if isinstance(reading, Final) else None
        if written is None:
            return reading
        if not written.calls:
            return Unusable("unusable_reply", MALFORMED, text)
        return Calls(read_calls(written.calls, step=asking.step, finish_reason=reply.finish_reason), written.before)

    def overhead(self, program: "Program") -> int:
        """The instruction and all tools."""
        return instruction_tokens(program)


def read_text(text: str | None, finish_reason: str | None, *, last: bool) -> Reading:
    """What a reply without calls means."""
    kind = finish_kind(finish_reason)
    if kind is FinishKind.FILTERED:
        return Declined(text or FILTERED)
    if kind is FinishKind.MALFORMED:
        return Unusable("unusable_reply", MALFORMED, text)
    if kind is FinishKind.FAILED:
        return Unusable("unusable_reply", BROKEN, text)
    if text is None:
        return Unusable("cut_off", CUT) if kind is FinishKind.LENGTH else Unusable("empty_reply", EMPTY)
    if kind is FinishKind.LENGTH and not last:
        return Unusable("cut_off", CUT, text)
    return Final(text, answer=text)


def instruction_tokens(program: "Program") -> int:
    """Estimated tokens of the instruction and of the tools' schemas."""
    texts = [program.instruction.content or ""]
    texts += [f"{tool.name}{tool.description}{tool.parameters}" for tool in program.specifications]
    return sum(estimate(text) for text in texts)

"""What a model wrote in the labels of ReAct, read as it is meant. PURE.

Labels count at the start of a line only, and outside of code fences and of the JSON that the first action takes. The first
action counts; what stands behind it, such as an observation that the model made up, was never said.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from agent.dialects.loose_json import OPENING, read_value
from agent.dialects.written_calls import call_of


@dataclass(frozen=True, slots=True)
class Action:
    """A tool to call.

    Attributes:
        thought: What stands before it.
        arguments: The object, or text that cannot be read as one; None where there is no input.
    """

    thought: str
    name: str
    arguments: str | Mapping[str, object] | None


@dataclass(frozen=True, slots=True)
class Answer:
    """The final answer. `text` is all that was said up to its end."""

    text: str
    answer: str


@dataclass(frozen=True, slots=True)
class Unlabelled:
    """Neither an action nor an answer. `text` is what was said."""

    text: str


class _Kind(Enum):
    THOUGHT = r"thoughts?|思考|思路|想法"
    INPUT = r"action[ _]?(?:\d+[ _])?input|(?:行[动動]|[动動]作)(?:输入|輸入|参数|參數)"
    ACTION = r"action|行[动動]|[动動]作"
    OBSERVATION = r"observations?|[观觀]察(?:[结結]果)?"
    ANSWER = r"final[ _]?answer|最[终終](?:答案|回答|[结結]果)"


@dataclass(frozen=True, slots=True)
class _Label:
    kind: _Kind
    start: int
    end: int


_LABEL: Final = re.compile(
    r"[ \t\u3000]*(?:\#{1,6}[ \t]+)?[*_`]{0,3}"
    + "(?:" + "|".join(f"(?P<{kind.name}>{kind.value})" for kind in _Kind) + ")"
    + r"(?:[ ]?\#?\d{1,3})?[*_`]{0,3}[ \t]*[:：][*_`]{0,3}[ \t\u3000]*",
    re.IGNORECASE,
)  # fmt: skip
_FENCE: Final = "```"
_CUT_LABEL: Final = re.compile(r"(?:^|\n)[ \t]*(?:Obs|Obse|Obser|Observ|Observa|Observat|Observati|Observatio|Observation)\s*\Z")
_NAME: Final = re.compile(r"[\w.-]+")
_NOTHING: Final = re.compile(r"(?:none|null|nil|n/?a|no(?:thing)?|无|無|没有|不需要|-*)(?:[ \t]*[(（.。].*)?", re.IGNORECASE | re.DOTALL)
_AROUND: Final = " \t\r\n*`\"'“”‘’"

"""What models were sent: each request is written down by the worker process, and read by the test."""

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from agent.conversation import tokens_of
from agent.messages import Message
from agent.models.base import ModelRequest
from tests.support import traces

_FILE = "requests.jsonl"
_MESSAGES = TypeAdapter(list[Message])


@dataclass(frozen=True, slots=True)
class Sent:
    """A request, as the model read it."""

    run: str
    step: int
    messages: Sequence[Message]

    @property
    def tokens(self) -> int:
        """The estimated size of its messages."""
        return sum(tokens_of(message) for message in self.messages)

    @property
    def text(self) -> str:
        """All that it says, a line for each message."""
        return "\n".join(f"{message.role.value}: {message.content or ''}" for message in self.messages)


def write_down(request: ModelRequest) -> None:
    """Called by a model of a worker process."""
    messages = _MESSAGES.dump_python([*request.messages], mode="json", exclude_defaults=True)
    line = json.dumps({"run": request.run_id, "step": request.step, "messages": messages}) + "\n"
    with (Path(os.environ[traces.VARIABLE]) / _FILE).open("a") as file:
        file.write(line)


def sent(folder: Path, run: str = "") -> list[Sent]:
    """All requests so far, or those of one run."""
    lines = [json.loads(line) for line in (folder / _FILE).read_text().splitlines()]
    found = [Sent(line["run"], line["step"], _MESSAGES.validate_python(line["messages"])) for line in lines]
    return [one for one in found if run in ("", one.run)]

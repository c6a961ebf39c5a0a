"""What time it is."""

from datetime import UTC, datetime, timedelta

import pytest

from agent.agent import Agent
from agent.errors import ToolError
from agent.events import RequestOpened
from agent.models.scripted import ScriptedModel, call, say
from agent.requests import Answer
from agent.toolbox import ask_user, now
from tests.support import virtual_time


@pytest.mark.parametrize(
    ("zone", "offset"), [("UTC", "+00:00"), ("Asia/Shanghai", "+08:00"), ("Asia/Kathmandu", "+05:45")]
)
def test_the_time_of_a_zone(zone: str, offset: str):
    before = datetime.now(UTC).replace(microsecond=0)
    text, _, words = now(zone).partition(" ")
    moment = datetime.fromisoformat(text)
    assert before <= moment <= datetime.now(UTC) + timedelta(seconds=1)
    assert text.endswith(offset)
    assert words == f"({moment:%A}, {zone})"


def test_without_a_zone_it_is_utc():
    assert "+00:00 (" in now()


@pytest.mark.parametrize(
    "zone", ["Vienna", "Europe", "../../etc/passwd", "/etc/localtime", "", "\x00", "x" * 5000, "\ud800"]
)
def test_no_zone(zone: str):
    with pytest.raises(ToolError, match="There is no time zone"):
        now(zone)


def test_a_person_is_asked():
    async def answer(asked: RequestOpened) -> Answer:
        return Answer(asked.request, "reply", "the second one")

    model = ScriptedModel([call("ask_user", question="Which one?"), say("done")])
    agent = Agent("Help.", tools=[ask_user], model=model)
    assert virtual_time.run(agent.run("go", answer=answer)).output == "done"

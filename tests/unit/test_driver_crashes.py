"""Whatever crashes, and whenever: the outcome is the same, and nothing is done twice that must not be."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agent.errors import ModelUnavailable
from agent.events import (
    ModelFailed,
    ToolReturned,
)
from agent.messages import INTERRUPTED
from agent.models.scripted import call, say
from tests.support.engine import RUN, folded
from tests.support.world import SCRIPT, assert_survived, live, world_of


def undisturbed_commits() -> int:
    world, agent = world_of(SCRIPT, failures={(2, 1): ModelUnavailable("busy")})
    live(world, agent)
    return len(world.record.commits)


@pytest.mark.parametrize("stored", [False, True], ids=["before it is stored", "once it is stored"])
@pytest.mark.parametrize("commit", range(1, undisturbed_commits() + 1))
def test_a_crash_at_every_commit(commit: int, stored: bool):
    world, agent = world_of(SCRIPT, failures={(2, 1): ModelUnavailable("busy")})
    assert_survived(world, live(world, agent, (commit, stored)))


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 6), st.booleans()), max_size=8))
def test_crash_after_crash(crashes: list[tuple[int, bool]]):
    world, agent = world_of(SCRIPT)
    assert_survived(world, live(world, agent, *crashes))


def test_a_call_that_is_executed_again_knows_it_and_has_the_same_key():
    world, agent = world_of([call("note"), say("done")])
    # 1 opens the model call, 2 starts the tool, 3 would be its result
    assert live(world, agent, (3, False)).status == "completed"
    assert world.effects == [("note", f"{RUN}:1.0", 1), ("note", f"{RUN}:1.0", 2)]


def test_the_model_is_told_of_a_call_in_doubt():
    world, agent = world_of([call("pay"), say("done")])
    assert live(world, agent, (3, False)).status == "completed"
    assert len(world.effects) == 1
    (returned,) = world.record.all_of(ToolReturned)
    assert (returned.outcome, returned.content) == ("unknown", INTERRUPTED)


def test_a_model_call_of_a_lost_worker_is_charged_once_as_reserved():
    world, agent = world_of([say("done")])
    assert live(world, agent, (2, False)).status == "completed"
    (lost,) = world.record.all_of(ModelFailed)
    opening = world.record.commits[0].opening
    assert opening is not None
    assert lost.usage == opening.as_usage()
    state = folded(world.record.facts)
    assert state.head.usage.model_calls == 2

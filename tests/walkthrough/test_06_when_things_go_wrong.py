"""Models are busy, cut off, silent or unsure. The loop knows what to do, within bounds; then the run fails and says why."""

import pytest

from agent import Agent, ModelRefusedRequest, ModelReply, ModelUnavailable, RunFailed, ScriptedModel
from agent.events import ModelFailed, ReplyRejected
from agent.testing import no_model_requests, say


def test_a_busy_server_is_asked_again_when_it_says():
    model = ScriptedModel([say("Hello.")], failures={(1, 1): ModelUnavailable("429", retry_after=0.6)})
    result = Agent("Greet.", model=model).run_sync("Hi!")
    failed = [recorded.event for recorded in result.events if isinstance(recorded.event, ModelFailed)]

    assert result.output == "Hello."
    assert [(event.error, event.retry_ms) for event in failed] == [("429", 600)]


def test_a_request_that_is_refused_is_not_sent_again():
    model = ScriptedModel([ModelRefusedRequest("401: no such key")])

    with pytest.raises(RunFailed, match="401: no such key"):
        Agent("Greet.", model=model).run_sync("Hi!")


def test_an_empty_reply_is_asked_for_again():
    result = Agent("Greet.", model=ScriptedModel([ModelReply(), say("Hello.")])).run_sync("Hi!")
    rejected = [recorded.event for recorded in result.events if isinstance(recorded.event, ReplyRejected)]

    assert result.output == "Hello."
    assert [event.reason for event in rejected] == ["empty_reply"]


def test_but_not_for_ever():
    with pytest.raises(RunFailed) as failed:
        Agent("Greet.", model=ScriptedModel([ModelReply()] * 99)).run_sync("Hi!")
    assert failed.value.reason == "empty_reply"


def test_a_refusal_is_an_outcome_of_its_own():
    with pytest.raises(RunFailed) as failed:
        Agent("Greet.", model=ScriptedModel([ModelReply(refusal="I would rather not.")])).run_sync("Hi!")
    assert (failed.value.reason, failed.value.partial) == ("refused", "I would rather not.")


def test_tests_can_make_sure_that_no_real_model_is_asked():
    agent = Agent("Greet.", model="openai:gpt-4o")

    with no_model_requests(), agent.override(model=ScriptedModel([say("Hello.")])):
        assert agent.run_sync("Hi!").output == "Hello."

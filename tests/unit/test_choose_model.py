"""From what an author writes as the model to its client, and what stands in for it in tests."""

import pytest

from agent.errors import AgentDefinitionError
from agent.models.base import ModelClient
from agent.models.choose import model_of
from agent.models.override import ModelOverride
from agent.models.scripted import ScriptedModel, say


@pytest.mark.parametrize(
    ("written", "name"),
    [("openai:gpt-4o", "openai:gpt-4o"), ("gpt-4o", "openai:gpt-4o"), ("openai:llama3.2:1b", "openai:llama3.2:1b")],
)
def test_names(written: str, name: str):
    assert model_of(written).name == name


def test_a_client_is_itself():
    model: ModelClient = ScriptedModel([])
    assert model_of(model) is model


def test_no_key_is_needed_to_name_a_model(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    assert model_of("gpt-4o").price is not None


@pytest.mark.parametrize(
    ("written", "told"),
    [
        ("anthropic:claude", "names the provider 'anthropic'; known are: openai"),
        ("llama3.2:1b", "written as 'openai:llama3.2:1b'"),
        ("", "has no name"),
        ("openai:", "has no name"),
        (None, "not None"),
    ],
)
def test_what_names_no_model(written: str, told: str):
    with pytest.raises(AgentDefinitionError, match=told):
        model_of(written)


def test_the_latest_substitute_stands_in_until_it_ends():
    first, second = ScriptedModel([say("1")]), ScriptedModel([say("2")])
    override = ModelOverride()
    assert override.model is None
    outer, inner = override.using(first), override.using(second)
    with outer:
        assert override.model is first
        with inner, override.using(first):
            assert override.model is first
        assert override.model is first
    assert override.model is None


def test_substitutes_may_end_in_any_order():
    first, second = ScriptedModel([say("1")]), ScriptedModel([say("2")])
    override = ModelOverride()
    one, two = override.using(first), override.using(second)
    one.__enter__()
    two.__enter__()
    one.__exit__(None, None, None)
    assert override.model is second
    two.__exit__(None, None, None)
    assert override.model is None

"""What is sent to an OpenAI-compatible server."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from agent.messages import Message, Role, ToolCall
from agent.models.base import ModelRequest, ToolSpecification
from agent.models.openai_request import request_bytes
from agent.schema import portable

USER = Message(role=Role.USER, content="hi")
SCHEMA: Mapping[str, object] = MappingProxyType({"type": "object", "required": ["a"]})
ADD = ToolSpecification("add", "Adds.", SCHEMA)


def sent(request: ModelRequest, **extra_body: object) -> Mapping[str, object]:
    data = request_bytes(request, model="m", origin="openai:m", output_limit_field="max_tokens", extra_body=extra_body)
    return cast("Mapping[str, object]", json.loads(data))


def sent_messages(*messages: Message) -> list[Mapping[str, object]]:
    return cast("list[Mapping[str, object]]", sent(ModelRequest(messages, max_tokens=1))["messages"])


def test_only_what_was_asked_for_is_sent():
    assert sent(ModelRequest([USER], max_tokens=7)) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "max_tokens": 7,
    }


def test_all_that_can_be_asked_for():
    request = ModelRequest(
        [USER],
        max_tokens=7,
        tools=[ADD],
        tool_choice="add",
        response_schema=SCHEMA,
        stop=["END"],
        temperature=0.0,
    )
    assert sent(request, seed=1, max_tokens=None, max_completion_tokens=9) == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "add",
                    "description": "Adds.",
                    "parameters": {"type": "object", "required": ["a"]},
                },
            }
        ],
        "tool_choice": {"type": "function", "function": {"name": "add"}},
        "response_format": {
            "type": "json_schema",
            "json_schema": {"name": "reply", "schema": {"type": "object", "required": ["a"]}},
        },
        "stop": ["END"],
        "temperature": 0.0,
        "seed": 1,
        "max_completion_tokens": 9,
    }


def test_a_choice_of_tools_by_word():
    for word in ("auto", "required", "none"):
        assert sent(ModelRequest([USER], max_tokens=1, tools=[ADD], tool_choice=word))["tool_choice"] == word


def test_calls_and_their_results():
    """case-001, case-003: arguments are a JSON text, whatever the server itself had sent."""
    calls = (ToolCall(id="c1", name="add", arguments='{"a":1}'), ToolCall(id="c2", name="now"))
    assert sent_messages(
        Message(role=Role.ASSISTANT, content="", tool_calls=calls),
        Message(role=Role.TOOL, tool_call_id="c1", name="add", content="2"),
        Message(role=Role.TOOL, tool_call_id="c2", name="now", content=""),
    ) == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a":1}'}},
                {"id": "c2", "type": "function", "function": {"name": "now", "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "2"},
        {"role": "tool", "tool_call_id": "c2", "content": ""},
    ]


def test_names_that_no_function_can_have_are_made_sendable():
    """A model may write anything as a name; a server that gets it back would refuse the whole history."""
    written = ("functions.add", "", "x" * 100, "wetter_für")
    (message,) = sent_messages(
        Message(role=Role.ASSISTANT, tool_calls=tuple(ToolCall(id=name, name=name) for name in written))
    )
    calls = cast("list[dict[str, dict[str, str]]]", message["tool_calls"])
    assert [call["function"]["name"] for call in calls] == ["functions_add", "unnamed", "x" * 64, "wetter_f_r"]


def test_the_names_that_are_offered_are_sent_as_they_are_offered():
    """A server that takes a name as that of a tool takes it in a call, and finds there what it has offered the model."""
    offered = ("查天气", "x" * 100)
    calls = tuple(ToolCall(id=name, name=name) for name in (*offered, "查时间"))
    request = ModelRequest(
        [USER, Message(role=Role.ASSISTANT, tool_calls=calls)],
        max_tokens=1,
        tools=[ToolSpecification(name, "", SCHEMA) for name in offered],
    )
    messages = cast("list[dict[str, list[dict[str, dict[str, str]]]]]", sent(request)["messages"])
    assert [call["function"]["name"] for call in messages[1]["tool_calls"]] == [*offered, "___"]


def test_fields_go_back_to_the_server_that_gave_them_and_to_no_other():
    """case-022, case-011"""
    calls = (ToolCall(id="c1", name="a"), ToolCall(id="c2", name="b"))
    fields: dict[str, object] = {
        "openai:m": {"reasoning_content": "I should look", "tool_calls": [{}, {"extra_content": {"signature": "S"}}]},
        "openai:other": {"reasoning_content": "not this"},
    }
    (message,) = sent_messages(
        Message(role=Role.ASSISTANT, tool_calls=calls, reasoning="I should look", provider_fields=fields)
    )
    assert message["reasoning_content"] == "I should look"
    first, second = cast("list[dict[str, object]]", message["tool_calls"])
    assert "extra_content" not in first
    assert second["extra_content"] == {"signature": "S"}
    (message,) = sent_messages(
        Message(role=Role.ASSISTANT, tool_calls=calls, reasoning="x", provider_fields={"openai:other": {"y": 1}})
    )
    assert set(message) == {"role", "content", "tool_calls"}


def test_lone_surrogates_never_leave():
    """case-074"""
    (message,) = sent_messages(Message(role=Role.USER, content="x \ud83d y"))
    assert message["content"] == "x \ufffd y"


def test_schemas_in_the_form_that_a_server_takes():
    """Some refuse references: they get what these stand for."""
    recursive: Mapping[str, object] = {
        "type": "object",
        "properties": {"tree": {"$ref": "#/$defs/Tree"}},
        "$defs": {"Tree": {"type": "object", "properties": {"inner": {"$ref": "#/$defs/Tree"}}}},
    }
    request = ModelRequest(
        [USER], max_tokens=1, tools=[ToolSpecification("plant", "Plants.", recursive)], response_schema=recursive
    )
    data = request_bytes(
        request, model="m", origin="o", output_limit_field="max_tokens", extra_body={}, schema_form=portable
    )
    body = json.loads(data)
    schemas = (body["tools"][0]["function"]["parameters"], body["response_format"]["json_schema"]["schema"])
    assert [schema == portable(recursive) for schema in schemas] == [True, True]
    assert b"$ref" not in data

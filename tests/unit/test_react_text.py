"""What models make of the labels of ReAct, and how it is read."""

import json
import time
from collections.abc import Mapping

import pytest

from agent.dialects.react_text import Action, Answer, Unlabelled, leading_value, read

TOOLS = frozenset({"search", "a", "b", "lookup", "查天气", "now", "none_of"})


def the_action(text: str) -> Action:
    said = read(text, TOOLS)
    assert isinstance(said, Action), said
    return said


def the_arguments(text: str) -> Mapping[str, object]:
    arguments = the_action(text).arguments
    assert isinstance(arguments, Mapping), arguments
    return arguments


def test_the_plain_form():
    text = 'Thought: look it up\nAction: search\nAction Input: {"q": "capital of X"}'
    assert read(text, TOOLS) == Action("Thought: look it up", "search", {"q": "capital of X"})
    assert read("Thought: I know\nFinal Answer: Y", TOOLS) == Answer("Thought: I know\nFinal Answer: Y", "Y")


def test_an_action_and_an_answer_in_one_reply_are_the_action():
    """case-054: what the model made up behind the action was never said."""
    text = (
        'Thought: look it up\nAction: search\nAction Input: {"q": "capital of X"}\nObservation: The capital is Y.\n'
        "Thought: I now know the final answer\nFinal Answer: Y"
    )
    assert read(text, TOOLS) == Action("Thought: look it up", "search", {"q": "capital of X"})


def test_an_answer_that_came_before_the_action_was_too_early():
    """case-054"""
    text = 'Thought: hm\nFinal Answer: Y\nAction: search\nAction Input: {"q": 1}'
    assert read(text, TOOLS) == Action("Thought: hm", "search", {"q": 1})


@pytest.mark.parametrize(
    "said", ["None (direct response required)", "None", "N/A", "n/a.", "无", "无需工具", "-", "no tool needed", ""]
)
def test_no_action_is_no_action(said: str):
    """case-056"""
    text = f"Thought: No tool is needed.\nAction: {said}".rstrip()
    assert read(text, TOOLS) == Unlabelled(text)
    assert read(f"{text}\nAction Input: None\nFinal Answer: hello", TOOLS) == Answer(
        f"{text}\nAction Input: None\nFinal Answer: hello", "hello"
    )


@pytest.mark.parametrize(
    "name", ["search", "`search`", "**search**", "[search]", '["search"]', "search.", "“search”", "search\nnow"]
)
def test_ways_to_write_a_name(name: str):
    assert the_action(f"Action: {name}\nAction Input: {{}}").name == "search"


def test_a_tool_whose_name_begins_like_nothing_is_a_tool():
    assert the_action("Action: none_of\nAction Input: {}") == Action("", "none_of", {})


@pytest.mark.parametrize(
    "text",
    [
        'Thought：我需要查询天气\nAction：查天气\nAction Input：{"城市"："北京"，"单位"："C"}\nObserv',
        'Thought：我需要查询天气\nAction：查天气\nAction Input：{"城市"："北京"，"单位"："C"}Observ',
        "思考：我需要查询天气\n行动：查天气\n行动输入：｛“城市”：“北京”，“单位”：“C”｝\n观察：晴",
        '思考：我需要查询天气\n**行动**：「查天气」\n**行动输入**：\n```json\n{"城市": "北京", "单位": "C"}\n```',
    ],
)
def test_chinese_replies(text: str):
    """case-059"""
    action = the_action(text)
    assert action.arguments == {"城市": "北京", "单位": "C"}
    assert action.name == "查天气"
    assert action.thought.endswith("：我需要查询天气")


def test_full_width_signs_within_strings_stay():
    """case-059"""
    assert the_arguments("Action: search\nAction Input: {'q'：'是：“否”，｛｝'}") == {"q": "是：“否”，｛｝"}


def test_a_chinese_answer():
    """case-059"""
    assert read("思考：知道了\n最终答案：晴，25 度", TOOLS) == Answer("思考：知道了\n最终答案：晴，25 度", "晴，25 度")


@pytest.mark.parametrize("rest", ["Obs", "Observ", "Observation", "Observation ", "Observation:", "Observation: "])
def test_what_a_stop_left_over_is_no_part_of_an_answer(rest: str):
    """case-059"""
    assert read(f"Final Answer: Y\n{rest}", TOOLS) == Answer("Final Answer: Y", "Y")


def test_labels_within_a_line_or_a_string_are_none():
    """case-062"""
    text = (
        'Thought: The user asks what "Final Answer: 42" means in logs. I must not stop yet.\nAction: search\n'
        'Action Input: {"q": "Final Answer: 42 Action: stop"}'
    )
    assert the_arguments(text) == {"q": "Final Answer: 42 Action: stop"}


def test_an_answer_may_speak_of_labels():
    """case-062"""
    answer = "The label 'Action:' opens a step.\nIt is followed by 'Action Input:' on the next line."
    assert read(f"Thought: done\nFinal Answer: {answer}", TOOLS) == Answer(
        f"Thought: done\nFinal Answer: {answer}", answer
    )
    minutes = "The minutes:\nAction: Bob sends the report\nAction Input: none"
    assert read(f"Final Answer: {minutes}", TOOLS) == Answer(f"Final Answer: {minutes}", minutes)


@pytest.mark.parametrize("rest", ["Action: None", "Action: N/A\nAction Input: None", "**Action:** none.", "行动：无"])
def test_an_action_that_is_none_is_no_part_of_an_answer(rest: str):
    """case-056, case-062"""
    assert read(f"Final Answer: 42\n{rest}", TOOLS) == Answer("Final Answer: 42", "42")
    minutes = "The minutes:\nAction: None of us writes\nAction:\nAction: Bob reads"
    assert read(f"Final Answer: {minutes}", TOOLS) == Answer(f"Final Answer: {minutes}", minutes)


def test_labels_in_code_are_none():
    """case-062"""
    answer = "A log reads:\n```\nThought: x\nAction: search\nAction Input: {}\nObservation: y\n```\nThat is all."
    assert read(f"Final Answer: {answer}", TOOLS) == Answer(f"Final Answer: {answer}", answer)
    text = 'Thought: no ```\nFinal Answer: 1\n``` but\nAction: search\nAction Input: {"q": 2}'
    assert the_arguments(text) == {"q": 2}


def test_a_string_may_go_over_lines_that_begin_like_labels():
    """case-062"""
    text = 'Action: search\nAction Input: {"q": "one\nFinal Answer: two\nObservation: three"}\nObservation: four'
    assert the_arguments(text) == {"q": "one\nFinal Answer: two\nObservation: three"}


def test_only_the_first_round_was_said():
    """case-064"""
    text = (
        'Thought 1: first\nAction 1: a\nAction 1 Input: {"n": 1}\nThought 2: second\nAction 2: b\n'
        'Action 2 Input: {"n": 2}\nUser: thanks!'
    )
    assert read(text, TOOLS) == Action("Thought 1: first", "a", {"n": 1})


@pytest.mark.parametrize(
    "labels", [("Action 3", "Action Input 3"), ("Action #3", "Action 3 Input"), ("ACTION", "Action_Input")]
)
def test_numbers_and_ways_to_write_labels(labels: tuple[str, str]):
    """case-064"""
    assert the_arguments(f'{labels[0]}: a\n{labels[1]}: {{"n": 1}}') == {"n": 1}


@pytest.mark.parametrize(
    "called",
    [
        'lookup ({"input": "abc"})',
        'lookup({"input": "abc"})',
        "lookup({'input': 'abc'})",
        'lookup（{"input"："abc"}）',
        '`lookup`({"input": "abc"}) and wait',
        'lookup {"input": "abc"}',
        '{"action": "lookup", "action_input": {"input": "abc"}}',
        '\n```json\n{"name": "lookup", "arguments": {"input": "abc"}}\n```',
    ],
)
def test_an_action_like_a_function_call(called: str):
    """case-065"""
    assert read(f"Thought: I need a tool.\nAction: {called}", TOOLS) == Action(
        "Thought: I need a tool.", "lookup", {"input": "abc"}
    )


@pytest.mark.parametrize(
    "called",
    [
        'lookup("abc")',
        'lookup(input="abc")',
        'lookup({"input": "abc"}',
        'lookup({"a": 1}, 2)',
        "lookup[abc]",
        "lookup(null",
    ],
)
def test_what_is_not_one_object_in_brackets_stays_text(called: str):
    """case-065"""
    action = the_action(f"Action: {called}")
    assert (action.name, isinstance(action.arguments, str)) == ("lookup", True)
    with pytest.raises(ValueError):
        json.loads(str(action.arguments))


@pytest.mark.parametrize(
    "written",
    [
        '{"q": "x", "n": [1, 2]}',
        '{\n  "q": "x",\n  "n": [\n    1,\n    2\n  ]\n}',
        '\n```json\n{"q": "x", "n": [1, 2]}\n```\nObservation: y',
        '```\n{"q": "x", "n": [1, 2]}\n```',
        '`{"q": "x", "n": [1, 2]}`',
        "{'q': 'x', 'n': [1, 2,],}",
        '{"q": "x", "n": [1, 2]} I will wait for the result.',
        '{"q": "x", "n": [1, 2]}\nI will wait for the result.\nUser: go on',
        '{"q": "x", "n": [1, 2]}**',
    ],
)
@pytest.mark.parametrize(
    "label", ["Action Input:", "**Action Input:**", "**Action Input**:", "### Action Input:", " Action input :"]
)
def test_ways_to_write_an_object(written: str, label: str):
    assert the_arguments(f"**Thought:** x\n**Action:** search\n{label} {written}") == {"q": "x", "n": [1, 2]}


@pytest.mark.parametrize(
    "written",
    [
        '{"q": "x',
        '{"q": "x"',
        "{'q': 'it's'}",
        '{"q": 1}{"q": 2}',
        '{"q": 1}\n{"q": 2}',
        "[1]",
        "text",
        '"text"',
        "5",
        '{"q": 1, "q": 2}',
    ],
)
def test_what_is_not_one_object_is_not_made_one(written: str):
    arguments = the_action(f"Action: search\nAction Input: {written}\nThought: so").arguments
    assert isinstance(arguments, str)


@pytest.mark.parametrize("written", ["", "None", "null", "N/A", "无", "\n```\n```", "-"])
def test_no_input(written: str):
    assert the_action(f"Action: now\nAction Input: {written}").arguments is None
    assert the_action("Action: now").arguments is None
    assert the_action("Action: now()").arguments is None
    assert the_action("Action: now\nAction Input: {}").arguments == {}


def test_a_reply_that_is_one_code_fence():
    text = '```\nThought: x\nAction: search\nAction Input: {"q": "x"}\n```'
    assert read(text, TOOLS) == Action("Thought: x", "search", {"q": "x"})
    assert read("```text\nFinal Answer: 42\n```", TOOLS) == Answer("Final Answer: 42", "42")


def test_an_unknown_tool_is_still_what_was_asked_for():
    assert the_action("Action: the search tool\nAction Input: {}").name == "the search tool"
    assert len(the_action(f"Action: {'x' * 5000}\nAction Input: {{}}").name) == 100


@pytest.mark.parametrize(
    "text", ["", "42", "Thought: hm", '{"q": "x"}', 'Action Input: {"q": "x"}', "Final Answer:", "The Final Answer: 42"]
)
def test_without_a_label_there_is_neither(text: str):
    assert isinstance(read(text, TOOLS), Unlabelled)


def test_an_observation_of_the_models_own_ends_what_was_said():
    assert read("Thought: x\nObservation: 5\nFinal Answer: 5", TOOLS) == Unlabelled("Thought: x")
    assert read("Final Answer: 5\nThought: done\nFinal Answer: 6", TOOLS) == Answer("Final Answer: 5", "5")
    made_up = "Final Answer: 5\n观察：6\nAction: search\nNext: 7"
    assert read(made_up, TOOLS) == Answer("Final Answer: 5", "5")


@pytest.mark.parametrize(
    "answer",
    [
        "Visit report\nObservations:\n- BP 120/80\nPlan: rest",
        "My review\nThoughts: it is good\nRating: 5",
        "Lab report\nObservation: the sky is blue\nConclusion: ok",
        "报告如下\n观察结果：血压 120\n建议：休息",
        "报告如下\n想法：很好\n最终结果：好",
        "Incident\nObservation: a leak\nThought: an old pipe\nAction: Bob mends it\nAction Input: a wrench",
        "Visit\nFindings: none\nAction: none\nFollow-up: in May",
        "Steps:\n1. add\nFinal result: 42",
        "Plan\nThoughts: a\nObservations: b\nFinal Answer: c",
    ],
)
@pytest.mark.parametrize("label", ["Final Answer: ", "**Final Answer:** ", "最终答案："])
def test_an_answer_may_have_headings_like_labels(answer: str, label: str):
    """case-062"""
    assert read(f"{label}{answer}", TOOLS) == Answer(f"{label}{answer}", answer)


@pytest.mark.parametrize(
    "written", ["**Final Answer:** 42", "**Final Answer: 42**", "Final answer：42", "## Final Answer: 42"]
)
def test_bold_answers(written: str):
    said = read(written, TOOLS)
    assert isinstance(said, Answer)
    assert said.answer == "42"


def test_the_value_that_an_answer_begins_with():
    assert leading_value('```json\n{"a": 1}\n``` That is all.') == {"a": 1}
    assert leading_value("[1, 2]") == [1, 2]
    assert leading_value("{'a': True}") == {"a": True}
    assert leading_value("yes") is None
    assert leading_value('{"a": 1') is None


@pytest.mark.parametrize(
    ("front", "piece"),
    [
        ("Final Answer: a\nObs", " "),
        ("Final Answer: a\nObs", "\n"),
        ("Final Answer: a", "\nObs"),
        ("Final Answer: a\n", "Action: none\n"),
        ("Final Answer: a\n", "Action:-\n"),
        ("Final Answer: a\n", "Action:\n"),
        ("Final Answer: a\n", "Thought: b\n"),
    ],
)
def test_what_repeats_without_end_is_read_in_time(front: str, piece: str):
    text = front + piece * (200_000 // len(piece)) + "x"
    started = time.process_time()
    assert isinstance(read(text, TOOLS), Answer)
    assert time.process_time() - started < 2

"""What a template leaves in a text: reasoning, and the tokens that end a turn."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.dialects.templates import without_end_of_turn, without_reasoning

SIZE = 200_000


@pytest.mark.parametrize("word", ["think", "THINK", "thinking"])
def test_reasoning_in_front_is_parted_from_the_text(word: str):
    assert without_reasoning(f"<{word}>I ponder</{word}>\n\n42") == ("42", "I ponder")
    assert without_reasoning(f"\n<{word}>\nI\nponder\n</{word}>42") == ("42", "I\nponder")


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("<think></think>", ""),
        ("<think>a</think>\n<thinking>b</thinking>\nc", "c"),
        ('<think lang="en">a</think>d', "d"),
        ("<think>They ask for `</think>`, I see.</think>d", "d"),
        ("<think>They ask about <think> tags.\n</think>\nd", "d"),
        ("[THINK]a[/THINK]d", "d"),
        ("I ponder\n</think>\n42", "42"),
        ("I ponder.</think>42", "42"),
        ("I ponder</think>\n42", "42"),
        ('I ponder\n</think>{"n": 42}', '{"n": 42}'),
        ("I ponder\n</think>\n\nModels write <think> first.", "Models write <think> first."),
        ("So:\nFinal Answer: 42\n</think>\n\nFinal Answer: 42", "Final Answer: 42"),
        ("a\r\n</think>\r\nb", "b"),
        ("</think>\n\n42", "42"),
        ("<|channel|>analysis<|message|>a<|end|><|start|>assistant<|channel|>final<|message|>42", "42"),
        ("<|channel|>analysis<|message|>a<|start|>assistant<|channel|>final<|message|>42", "42"),
        ("<|channel|>final<|message|>42", "42"),
        ("<|channel|>analysis<|message|>a<|end|><|channel|>commentary to=functions.b<|message|>{}", None),
    ],
)
def test_ways_to_leave_reasoning_in_a_text(text: str, kept: str | None):
    said, _ = without_reasoning(text)
    assert said == ("<|channel|>commentary to=functions.b<|message|>{}" if kept is None else kept)


@pytest.mark.parametrize("cut", ["<think>I ponder", "<think>", "<|channel|>analysis<|message|>I ponder"])
def test_reasoning_that_was_cut_off_is_no_answer(cut: str):
    assert without_reasoning(cut)[0] == ""


@pytest.mark.parametrize(
    "text",
    [
        "Models write <think> first.",
        "Models write <think> first and </think> last.",
        "Models write:\n<think>\nso\n</think>\n42",
        "`</think>` ends it.",
        "The end is `</think>`\nor `[/THINK]`",
        "The end is </think>, as it were.",
        'It is split at "</think>" there.',
        '{"text": "the tag </think> closes", "n": 1}',
        "So:\n```python\ntext.split(\n'''\n</think>\n''')\n```\nThat is all.",
        "1. Find the closing tag, which is </think>\n2. Take everything behind it.",
        "To split the reasoning, search for </think>\nand take everything behind it.",
        "Closing tags to look for:\n- </think>\n- </thinking>\n\nAll are removed.",
        "I ponder\n</think>\nThe tag is\n</think>\nby the way.",
        "Text:</think>word",
        "Example:\n~~~\na\n</think>\nb\n~~~\nThat is all.",
        "- ```xml\n  a\n  </think>\n  ```\nThat is all.",
        "1. Example: ```xml\na\n</think>\n```\nThat is all.",
        "````md\n```\n</think>\n```\n</think>\n````\nThat is all.",
        '<report>\n<reasoning lang="en">Because.\n</reasoning>\n<verdict>buy</verdict>\n</report>',
        '<report>\n<think lang="en">Because.\n</think>\n<verdict>buy</verdict>\n</report>',
        "<thought>I think, therefore I am</thought> is the famous sentence by Descartes.",
        "<reasoning>Demand rose.</reasoning><verdict>buy</verdict>",
        '{"tool": "terminate", "arguments": {"q": "a.</think>b"}}',
        '[\n"a\n</think>\n"]',
        "Final Answer: The tag is\n</think>\nin a line.",
        "Thought: I know\n**Final Answer:** The tag is\n</think>\nin a line.",
        "最终答案：标签是\n</think>\n。",
        "  an answer\n",
        "",
    ],
)
def test_an_answer_may_speak_of_it(text: str):
    assert without_reasoning(text) == (text, None)


def test_behind_known_reasoning_an_end_is_a_mention():
    text = "The closing tag is\n</think>\nand that is all."
    assert without_reasoning(text, known=True) == (text, None)
    assert without_reasoning(f"<think>hm</think>\n{text}") == (text, "hm")
    assert without_reasoning(f"<think>\n\n</think>\n\n{text}") == (text, "")


@pytest.mark.parametrize("token", ["<|im_end|>", "<|eot_id|>", "</s>", "<|endoftext|>", " <|im_end|>\n<|endoftext|>\n"])
def test_what_ends_a_turn_is_no_part_of_it(token: str):
    assert without_end_of_turn(f" 42{token}") == "42"
    assert without_end_of_turn(token) == ""


@pytest.mark.parametrize("text", ["\u200b", "\ufeff \u200b\n", "\u200d\u200c", "\x00", "", " \n\u2060"])
def test_what_is_not_seen_is_nothing(text: str):
    assert without_end_of_turn(text) == ""


@pytest.mark.parametrize(
    "text",
    [
        "<s>42</s>",
        'Price: <s class="old">10</s>',
        "<S\n>42</s>",
        "The token `<|im_end|>`",
        "<|im_end|> ends it.",
        "می\u200cخواهم",
        "\U0001f468\u200d\U0001f469",
    ],
)
def test_what_belongs_to_an_answer_stays(text: str):
    assert without_end_of_turn(text) == text


@pytest.mark.parametrize(
    "piece",
    [
        "</think>\n",
        "<think>",
        "<think ",
        "```x\n",
        "~~~a",
        "`",
        "<|channel|>",
        " ",
        "\n",
        "</s>",
        " </s>",
        "<|im_end|>\n",
    ],
)
@pytest.mark.parametrize("front", ["", "a", "a\n</think>\n", "a" * SIZE])
def test_what_repeats_without_end_is_read_in_time(front: str, piece: str):
    started = time.process_time()
    for behind in ("", "x"):
        without_end_of_turn(without_reasoning(front + piece * (SIZE // len(piece)) + behind)[0])
    assert time.process_time() - started < 4


PIECES = ["<think>", "</think>", "[THINK]", "`", "```", "\n", " ", "x", "<|channel|>analysis<|message|>", "<|end|>"]


@given(st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=12).map("".join))
def test_no_reasoning_is_left_to_be_found(text: str):
    kept, thoughts = without_reasoning(text)
    assert text.endswith(kept)
    again, _ = without_reasoning(kept, known=thoughts is not None)
    assert again == kept

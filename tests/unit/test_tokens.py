"""Token counts without a tokenizer, against counts that were made once with the public vocabularies."""

import json
from pathlib import Path
from typing import TypedDict

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.budget import Budget, Usage
from agent.events import ModelReplied, Recorded, RunCreated
from agent.state import RunState
from agent.step import corrected
from agent.tokens import CL100K, O200K, estimate


class Golden(TypedDict):
    text: str
    o200k: int
    cl100k: int


GOLDEN: dict[str, Golden] = json.loads((Path(__file__).parent / "golden_tokens.json").read_text())
NAMED = [name for name in GOLDEN if name.startswith(("english", "chinese", "code", "emoji"))]


@pytest.mark.parametrize("name", NAMED)
def test_counts_are_within_fifteen_percent(name: str):
    golden = GOLDEN[name]
    assert estimate(golden["text"], O200K) == pytest.approx(golden["o200k"], rel=0.15)
    assert estimate(golden["text"], CL100K) == pytest.approx(golden["cl100k"], rel=0.15)


@pytest.mark.parametrize("name", sorted(set(GOLDEN) - set(NAMED)))
def test_other_scripts_and_short_mixtures_are_within_a_quarter(name: str):
    golden = GOLDEN[name]
    assert estimate(golden["text"], O200K) == pytest.approx(golden["o200k"], rel=0.25)


def test_a_long_text_is_sampled():
    text = GOLDEN["english"]["text"] * 50
    assert estimate(text) == pytest.approx(GOLDEN["english"]["o200k"] * 50, rel=0.15)


def test_nothing_is_nothing_and_anything_is_something():
    assert estimate("") == 0
    assert all(estimate(text) >= 1 for text in (" ", "\n", "\ud800", "\u200d", "a", "१"))


def reported(tokens: int, estimated: int) -> RunState:
    """A run of which a server has reported the size of one request."""
    state = RunState()
    usage = Usage(model_calls=1, input_tokens=tokens, output_tokens=5)
    for seq, event in enumerate(
        [RunCreated(agent="a", task="t", budget=Budget()), ModelReplied(step=1, usage=usage, request_tokens=estimated)]
    ):
        state.apply(Recorded(seq=seq + 1, at=0, event=event))
    return state


def test_what_a_server_reports_corrects_later_estimates():
    assert corrected(2 * 1000, reported(1370, 1000)) == 2740


@given(st.permutations(NAMED))
def test_once_a_usage_is_reported_the_next_request_is_within_five_percent(texts: list[str]):
    """An instruction and tools, and behind them a conversation of all kinds of text, in any order."""
    tokens = sum(GOLDEN[name]["o200k"] for name in ("english", "code_json"))
    estimated = sum(estimate(GOLDEN[name]["text"]) for name in ("english", "code_json"))
    for name in texts:
        state = reported(tokens, estimated)
        tokens += GOLDEN[name]["o200k"]
        estimated += estimate(GOLDEN[name]["text"])
        assert corrected(estimated, state) == pytest.approx(tokens, rel=0.05)


@pytest.mark.parametrize("kind", ["english", "chinese", "code", "emoji"])
def test_a_model_of_another_vocabulary_is_known_by_its_first_usage(kind: str):
    """The same kind of text goes on; where the kind changes, the next report tells."""
    texts = [name for name in NAMED if name.startswith(kind)]
    tokens = sum(GOLDEN[name]["cl100k"] for name in texts)
    state = reported(tokens, sum(estimate(GOLDEN[name]["text"]) for name in texts))

    assert corrected(3 * sum(estimate(GOLDEN[name]["text"]) for name in texts), state) == pytest.approx(
        3 * tokens, rel=0.05
    )

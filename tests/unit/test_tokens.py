"""Token counts without a tokenizer, against counts that were made once with the public vocabularies."""

import json
from pathlib import Path
from typing import TypedDict

import pytest

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


def test_what_a_server_reports_corrects_later_estimates():
    """Within 5 % once a model has reported the usage of one request of the run."""
    state = RunState()
    reported, estimated = 1370, 1000
    usage = Usage(model_calls=1, input_tokens=reported, output_tokens=5)
    for seq, event in enumerate(
        [RunCreated(agent="a", task="t", budget=Budget()), ModelReplied(step=1, usage=usage, request_tokens=estimated)]
    ):
        state.apply(Recorded(seq=seq + 1, at=0, event=event))
    assert corrected(2 * estimated, state) == pytest.approx(2 * reported, rel=0.05)

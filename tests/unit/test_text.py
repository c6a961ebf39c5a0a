"""Text at the borders: nothing that UTF-8 cannot carry, and no sign cut in two."""

import json
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.text import bounded, place_to_cut, well_formed, well_formed_json

FAMILY = "\U0001f468\u200d\U0001f469\u200d\U0001f467"
WAVE = "\U0001f44b\U0001f3fd"
FLAG = "\U0001f1ee\U0001f1f9"
ACCENT = "e\u0301"


@pytest.mark.parametrize(
    ("text", "mended"),
    [("a\udc9db \ud83d c", "a\ufffdb \ufffd c"), ("\ud83d\ude80", "\U0001f680"), ("plain é", "plain é")],
)
def test_lone_surrogates_are_replaced_and_pairs_joined(text: str, mended: str):
    """case-074"""
    assert well_formed(text) == mended
    assert well_formed_json({text: [text, 1, None]}) == {mended: [mended, 1, None]}


@given(st.text(alphabet=st.characters(codec=None)))
def test_whatever_comes_in_can_be_encoded(text: str):
    well_formed(text).encode()
    json.dumps(well_formed_json([text]), ensure_ascii=False).encode()


@pytest.mark.parametrize("sign", [FAMILY, WAVE, FLAG, ACCENT, "\r\n"])
def test_a_sign_is_kept_whole_or_left_out(sign: str):
    """case-074"""
    text = "ab" + sign + "cd"
    for position in range(len(text) + 1):
        kept = text[: place_to_cut(text, position)]
        assert kept in ("", "a", "ab", "ab" + sign, "ab" + sign + "c", text), position
    for limit in range(1, len(text)):
        assert len(bounded(text, limit)) <= limit
        assert bounded(text, limit)[:-1] in ("", "a", "ab", "ab" + sign, "ab" + sign + "c")


def test_what_never_ends_is_cut_all_the_same():
    endless = "x" + "\u0301" * 1000
    assert place_to_cut(endless, 500) == 500


@given(st.text(), st.integers(0, 50))
def test_a_place_to_cut_is_not_far_before(text: str, position: int):
    place = place_to_cut(text, position)
    assert max(position - 32, 0) <= place <= position
    assert text[:place] + text[place:] == text


def test_values_that_need_no_mending_stay_the_same_object():
    value = cast(object, {"a": ["é"]})
    assert well_formed_json(value) is value

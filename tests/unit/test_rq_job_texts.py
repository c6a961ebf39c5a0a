"""What RQ's tools and dashboards can read of a run: a few plain words, never markup, never a secret."""

import pytest

from agent.errors import ConfigurationError
from agent.redaction import register_secret
from scheduler.rq_bridge import ENTRY_POINT, describe, ring_keys, ring_words
from worker import rq_entry

RUN = "0-0199aa"


def test_the_description_begins_with_agent_and_task() -> None:
    assert describe("calculator", "Add 2 and 3", RUN) == "calculator: Add 2 and 3"
    assert describe("calculator", "Add 200 and 10, then multiply the result by 2.", RUN) == (
        "calculator: Add 200 and 10, then multiply the resul…"
    )
    assert describe("rechner", "Füge\n  zwei \t Zahlen zusammen", RUN) == "rechner: Füge zwei Zahlen zusammen"
    assert describe("support", "I don't know", RUN) == "support: I don’t know"


@pytest.mark.parametrize(
    "task",
    [
        "<img src=x onerror=alert(document.domain)>",
        '"><svg onload=alert(1)>',
        "</script><script>alert(1)</script>",
        "[x](javascript:alert(1))",
        "",
        "\x00\x1b[31m",
    ],
)
def test_where_no_plain_word_begins_the_task_the_run_stands(task: str) -> None:
    assert describe("calculator", task, RUN) == f"calculator: {RUN}"


def test_it_is_cut_where_markup_begins() -> None:
    assert describe("calculator", "Read this: <script>alert(1)</script>", RUN) == "calculator: Read this:…"
    assert describe("<b>evil</b>", "Add", RUN) == "bevil/b: Add"


def test_secrets_stay_out() -> None:
    register_secret("wJalrXUtnFEMIK7MDENG")

    assert "wJalr" not in describe("calculator", "Use wJalrXUtnFEMIK7MDENG", RUN)


def test_a_long_task_is_looked_at_only_at_its_start() -> None:
    text = describe("calculator", "word " * 100_000, RUN)

    assert len(text) == len("calculator: ") + 40
    assert text.endswith("…")


def test_the_job_names_a_function_that_says_which_worker_it_needs() -> None:
    assert f"{rq_entry.__name__}.{rq_entry.run.__name__}" == ENTRY_POINT
    with pytest.raises(ConfigurationError, match="pawl worker"):
        rq_entry.run(RUN)


def test_the_ring_is_told_rqs_own_names() -> None:
    assert ring_keys(RUN, "low") == (
        "rq:queue:low",
        "rq:queue:low:intermediate",
        "rq:scheduled:low",
        f"rq:job:{RUN}",
    )
    assert ring_words() == ("status", "queued", "canceled", "stopped")

"""No secret is found anywhere outside of the process that uses it: case-127, case-128, case-137."""

import json
import traceback
from typing import Any

import pytest

from agent.errors import RunFailed
from scheduler.lifecycle import Status
from tests.support.model_server import NO_ANSWER, ModelServer, chat_reply, http_answer
from tests.support.servers import Server
from tests.support.site import Site
from tests.support.snapshot import take

API_KEY = "sk-TEST1234567890abcdef"
QUERY_KEY = "plainWords7Query"
CONTEXT_TOKEN = "quietWords8Context"
REDIS_PASSWORD = "hushWords9Redis"
SECRETS = (API_KEY, QUERY_KEY, CONTEXT_TOKEN, REDIS_PASSWORD)


def calls(tool: str, **arguments: object) -> bytes:
    function = {"name": tool, "arguments": json.dumps(arguments)}
    return http_answer(chat_reply({"tool_calls": [{"id": "c", "type": "function", "function": function}]}))


ANSWERS = (
    http_answer(f"no such key: {API_KEY}, ?key={QUERY_KEY}", status=500, content_type="text/plain"),
    calls("charge"),
    calls("ask_user", question="Which order?"),
    calls("look"),
    http_answer(chat_reply({"content": "done"})),
    http_answer({"error": {"message": f"unknown path /v1?key={QUERY_KEY}"}}, status=404),
    NO_ANSWER,
)


@pytest.fixture
def guarded(server: Server, site: Site) -> Site:
    """A deployment whose workers and commands name a user of Redis with a password."""
    site.redis.execute_command("ACL", "SETUSER", "pawl", "on", f">{REDIS_PASSWORD}", "~*", "&*", "+@all")
    site.redis.config_set("slowlog-log-slower-than", 0)
    site.url = f"unix://pawl:{REDIS_PASSWORD}@{server.socket}"
    return site


def test_no_secret_leaves_the_process_that_uses_it(guarded: Site) -> None:
    site, told = guarded, dict[str, str]()
    with ModelServer(*ANSWERS) as models:
        worker = site.worker(
            targets="tests.support.secretive",
            PAWL_LOG_LEVEL="debug",
            OPENAI_API_KEY=API_KEY,
            OPENAI_BASE_URL=f"{models.url}?key={QUERY_KEY}",
            TEST_TOKEN=CONTEXT_TOKEN,
            TEST_NOWHERE=f"http://127.0.0.1:9/v1?key={QUERY_KEY}",
        )
        run = site.client.submit("keeper", "charge it", metadata={"mail": 1})
        assert run.wait(timeout=30).status is Status.WAITING
        run.reply("the first")
        assert run.result(timeout=30).output == "done"
        runs = [run.id]
        for agent in ("keeper", "hasty", "nowhere", "odd", "vaultless"):
            failing = site.client.submit(agent, "x")
            runs.append(failing.id)
            with pytest.raises(RunFailed) as failed:
                failing.result(timeout=60)
            told[f"error of {agent}"] = "".join(traceback.format_exception(failed.value))
        seen = [(request.path, request.headers["authorization"]) for request in models.received]
    assert seen == [(f"/v1/chat/completions?key={QUERY_KEY}", f"Bearer {API_KEY}")] * len(ANSWERS)

    for run_id in runs:
        told |= {f"{words[0]} {run_id}": site.pawl(*words) for words in said_of(run_id)}
    for words in (("runs", "--json"), ("runs",), ("agents", "--json"), ("workers", "--json"), ("usage",)):
        told[" ".join(words)] = site.pawl(*words)
    told["rq info"] = site.rq("info")
    told["log"] = worker.text()
    told |= stored(site.redis)

    found = [(where, secret) for where, text in told.items() for secret in SECRETS if secret in text]
    assert found == []
    events = "".join(text for where, text in told.items() if where.startswith("events"))
    for words in ("no such key: [redacted]", "no charge", "bad key [redacted]", "/v1?key=[redacted]"):
        assert words in events, "it was there, but for the secret"
    for words in ("charging", "no vault for vaultless: [redacted]", "Traceback"):
        assert words in told["log"]


def said_of(run: str) -> list[tuple[str, ...]]:
    return [("show", run), ("show", run, "--json"), ("events", run), ("events", run, "--json")]


def stored(redis: Any) -> dict[str, str]:
    """All that Redis has: names, contents, dumps, and what it remembers of commands and clients."""
    found = {
        f"redis {part}": str(redis.execute_command(*part.split()))
        for part in ("CLIENT LIST", "SLOWLOG GET 10000", "ACL LOG")
    }
    for key, held in take(redis).keys.items():
        found[f"key {key}"] = f"{key} {held.content!r} {redis.dump(key)!r}"
    return found

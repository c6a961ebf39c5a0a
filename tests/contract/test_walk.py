"""The random walk over every server; and that it sees what it is there to see."""

from __future__ import annotations

import pytest
import redis
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from agent.errors import BrokenRecord
from scheduler.scripting import Library, Script, read_library
from scheduler.scripts import Scripts
from tests.conftest import Servers
from tests.support.runs import Desk
from tests.support.walk import Walk

WALK = settings(
    max_examples=100,
    stateful_step_count=50,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example],
)


def walk(desk: Desk, how: settings) -> None:
    machine = type("Walk", (Walk,), {"at": desk})
    run_state_machine_as_test(machine, settings=how)


def test_all_invariants_hold_on_every_walk(desk: Desk, request: pytest.FixtureRequest) -> None:
    """On real servers; fakeredis, whose Lua is ten times slower, walks a tenth of the way."""
    short = "fakeredis" in request.node.name
    walk(desk, settings(WALK, max_examples=10) if short else WALK)


def without(name: str, text: str, replacement: str) -> Library:
    """The scripts with one check taken out; all that include it where it stands in a file that is shared."""
    library = dict(read_library())
    found = 0
    for script in library.values():
        if name in ("prelude", "records", "sessions", script.name) and text in script.text:
            library[script.name] = Script(script.name, script.text.replace(text, replacement))
            found += 1
    assert found, f"{text!r} does not stand in {name}.lua"
    return library


CHECKS = {
    "fence without activation": (
        "commit",
        "record.token ~= token or",
        "record.token:match('^%d+:') ~= token:match('^%d+:') or",
    ),
    "no rev": ("commit", "or record.rev > base then", "then"),
    "rev behind the base": ("commit", "if record.rev < base then", "if false then"),
    "commit without token": ("commit", "if record.token ~= token or record.rev > base", "if record.rev > base"),
    "park without a look at the inbox": ("commit", "(#news > 0 or record.cancel ~= '')", "record.cancel ~= ''"),
    "park without a look at cancel": ("commit", "(#news > 0 or record.cancel ~= '')", "#news > 0"),
    "already without own": ("commit", "mine and 1 or 0", "1"),
    "commit without nonce": ("commit", "if record.last == nonce", "if false"),
    "close without promotion": ("sessions", "promoted = promote(session)", "promoted = ''"),
    "close without settling": ("sessions", "  settle(record)\n  move(record, status)", "  move(record, status)"),
    "close without expiry": ("sessions", "  expire(record, now + RUN_LIFE)\n", ""),
    "reap of another's run": ("reap", " or record.token ~= token", ""),
    "reap without settling": ("reap", "\nsettle(record)\n", "\n"),
    "resume beside the active run": ("resume", "local active = active_run(record.session)", "local active = nil"),
    "resume without persist": ("resume", "call('PERSIST', key)", "call('TYPE', key)"),
    "a claim of one behind another": ("claim", "if record.behind == '1'", "if false"),
    "a wake that leaves the run asleep": ("signal", "if outcome == 'woken'", "if false"),
    "an ask without deadline": ("prelude", "if deadline and (not first or deadline < first)", "if false"),
    "a claim that forgets deadlines": (
        "claim",
        "move(record, 'running', first_deadline(record))",
        "move(record, 'running')",
    ),
    "a deadline beside work": ("commit", "if #asks > 0 then schedule", "if false then schedule"),
    "a run that begins and is not remembered": ("claim", "then remember(record) end", "then end"),
    "a rollback that is remembered": (
        "sessions",
        "call('LREM', BEGUN .. record.session, 0, record.id)",
        "call('TIME')",
    ),
    "create again": ("create", "if call('EXISTS', RUN) == 1", "if false"),
    "renew of a lost run": ("renew", "if record[1] == token and", "if"),
}


@pytest.mark.parametrize("check", CHECKS)
def test_a_check_that_is_taken_out_is_missed(check: str, servers: Servers) -> None:
    client = redis.Redis(unix_socket_path=str(servers.get("valkey").socket), protocol=2)
    desk = Desk(client, Scripts(library=without(*CHECKS[check])))

    with pytest.raises((AssertionError, BrokenRecord)):
        walk(desk, settings(WALK, max_examples=1_000, phases=[Phase.generate]))

"""Every key and its life."""

from __future__ import annotations

import re
from datetime import date

import pytest

from agent.errors import ConfigurationError
from scheduler.keys import DERIVED, FAMILY, SHARED, Keys, Life, lua_names, name, scoped, unscoped
from scheduler.scripting import LUA, read_library

KEYS = Keys()


def made(lua: str) -> str:
    """What a line of Lua makes: texts and names, joined by `..`."""
    known = {"PREFIX": f"{KEYS.prefix}:", "own": "0-a"}
    return "".join(known.get(part) or part.strip("'") for part in lua.split(" .. "))


def test_lua_names_the_keys_as_python_does() -> None:
    everything = " ".join(kind.upper().replace("-", "_") for kind in [*FAMILY, *SHARED, *DERIVED])
    keys = {name: made(lua) for name, lua in lua_names(everything).items()}

    assert [keys[kind.upper()] for kind in FAMILY] == list(KEYS.family("0-a"))
    assert keys["LEASES"] == KEYS.leases
    assert keys["BY_TIME"] == KEYS.by_time
    assert keys["SESSIONS_OF"] == KEYS.sessions_of("")
    assert keys["SESSION"] == KEYS.session("")


def test_a_script_makes_only_the_keys_that_it_uses() -> None:
    assert list(lua_names("call('ZREM', LEASES, own) -- by SESSION_LIFE")) == ["LEASES"]
    assert list(lua_names("call('ZREM', LEASES, of(id, RUN))", known=["LEASES"])) == ["RUN"]


def test_each_script_makes_each_key_once() -> None:
    for script in read_library().values():
        made = re.findall(r"^local ([A-Z_]+) = PREFIX", script.text, re.MULTILINE)
        assert "RUN" in made
        assert len(made) == len(set(made)), script.name


def test_no_key_is_spelled_in_lua() -> None:
    kinds = "|".join([*FAMILY, *SHARED, *DERIVED])
    for path in LUA.glob("*.lua"):
        code = re.sub(r"--.*", "", path.read_text())
        assert not re.search(rf"['\"][^'\"]*\b({kinds})s?:", code), path.stem


def test_all_keys_share_one_hash_tag() -> None:
    keys = [*Keys("shop").family("0-a"), Keys("shop").leases, Keys("shop").session("a:b")]
    keys += [KEYS.swept_at, KEYS.cards, KEYS.usage(date(2026, 1, 2)).key, KEYS.tenant("acme").key]

    assert {re.sub(r"^{(.*?)}:.*", r"\1", key) for key in keys} == {"shop", "pawl"}


@pytest.mark.parametrize(
    ("key", "life"),
    [
        (KEYS.run("0-a"), Life.RUN),
        (KEYS.events("0-a"), Life.RUN),
        (KEYS.idem("t:k"), Life.RUN),
        (KEYS.session("t:s"), Life.SESSION),
        (KEYS.next("t:s"), Life.SESSION),
        (KEYS.usage(date(2026, 1, 2)).key, Life.LEDGER),
        (KEYS.tenant("t").key, Life.FIXED),
        (KEYS.due, Life.ENTRIES),
        (KEYS.by_status("queued"), Life.ENTRIES),
        (KEYS.swept_at, Life.FIXED),
        ("{pawl}:stranger", None),
        ("rq:job:0-a", None),
    ],
)
def test_every_key_has_a_life(key: str, life: Life | None) -> None:
    assert KEYS.life(key) == life


def test_ledgers_say_how_long_they_live() -> None:
    assert KEYS.usage(date(2026, 1, 2)).life is Life.LEDGER
    assert KEYS.tenant("t").life is Life.FIXED


def test_two_tenants_never_share_a_session() -> None:
    assert scoped("acme", "s1") != scoped("", "s1") != scoped("acme:s1", "")
    assert unscoped(scoped("acme", "a:b")) == "a:b"
    assert unscoped(scoped("", "s")) == "s"


@pytest.mark.parametrize("value", ["", "x" * 257, "a\nb", "a\x00b", "\ud83d"])
def test_names_that_no_key_can_have(value: str) -> None:
    with pytest.raises(ConfigurationError, match="session"):
        name("session", value)


def test_a_tenant_has_no_colon() -> None:
    with pytest.raises(ConfigurationError, match="':'"):
        name("tenant", "a:b")
    assert name("session", "a:b") == "a:b"

"""Every key and its life."""

from __future__ import annotations

import re
from datetime import date

import pytest

from agent.errors import ConfigurationError
from scheduler.keys import DERIVED, FAMILY, SHARED, Keys, Life, name, scoped, unscoped
from scheduler.scripting import LUA

KEYS = Keys()
PRELUDE = (LUA / "prelude.lua").read_text()


def test_the_prelude_takes_the_frame_in_its_order() -> None:
    taken = re.search(r"^local ([A-Z_,\s]+) = unpack\(KEYS\)", PRELUDE, re.MULTILINE)
    assert taken

    words = [word.strip().lower().replace("_", "-") for word in taken[1].split(",")]

    assert words == [*FAMILY, *SHARED, *DERIVED]


def test_a_frame_of_a_run() -> None:
    frame = KEYS.frame("0-a")

    assert frame[: len(FAMILY)] == tuple(key.encode() for key in KEYS.family("0-a"))
    assert KEYS.run("0-a").encode() == frame[0]
    assert KEYS.leases.encode() in frame
    assert KEYS.session("").encode() in frame


def test_a_frame_of_no_run_has_the_prefixes_of_all() -> None:
    for prefix, key in zip(KEYS.frame(), KEYS.frame("0-a"), strict=True):
        assert key.startswith(prefix)


def test_no_key_is_spelled_in_lua() -> None:
    kinds = "|".join([*FAMILY, *SHARED, *DERIVED])
    for path in LUA.glob("*.lua"):
        code = re.sub(r"--.*", "", path.read_text())
        assert not re.search(rf"['\"][^'\"]*\b({kinds})s?:", code), path.stem


def test_all_keys_share_one_hash_tag() -> None:
    keys = [key.decode() for key in Keys("shop").frame("0-a")]
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

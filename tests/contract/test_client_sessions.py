"""Conversations are listed, looked at, made to forget, and removed, on a server of each kind."""

import pytest

from agent.conversation import ContextState
from agent.errors import BrokenRecord, ConfigurationError, Conflict, SessionNotFound
from agent.events import RunCompleted
from scheduler import AsyncClient
from tests.support.clients import Play
from tests.support.hand import Hand

KNOWN = ContextState(
    first_task="Paint the house.", summary="Much was painted.", memory=("red",), open_questions=("Which wall?",)
)


def know(hand: Hand, session: str, state: bytes) -> None:
    hand.redis.hset(hand.keys.session(session), "state", state)


def test_sessions_are_listed_page_by_page_the_last_active_first(play: Play, hand: Hand) -> None:
    async def scene(client: AsyncClient) -> None:
        for number in range(5):
            hand.redis.set(hand.keys.clock, 1_900_000_000_000 + 1_000 * number)
            await client.submit("support", "x", session=f"s{number}", tenant="t" if number % 2 else "u")
        hand.redis.set(hand.keys.clock, 1_900_000_009_000)
        await client.submit("support", "x", session="s1", tenant="t")

        first = await client.sessions(limit=3)
        second = await client.sessions(limit=3, page=first.next)
        assert [one.id for one in (*first.sessions, *second.sessions)] == ["s1", "s4", "s3", "s2", "s0"]
        assert second.next == ""
        assert [one.id for one in (await client.sessions(tenant="t")).sessions] == ["s1", "s3"]
        assert (await client.sessions(tenant="nobody")).sessions == ()
        assert first.sessions[0].last_activity.timestamp() == 1_900_000_009
        assert first.sessions[0].waiting == 1
        with pytest.raises(ConfigurationError, match="no place"):
            await client.sessions(page="x")

    play(scene)


def test_a_session_says_what_it_knows_and_where_it_stands(play: Play, hand: Hand) -> None:
    async def scene(client: AsyncClient) -> None:
        with pytest.raises(SessionNotFound, match="no session 's' of tenant 't'"):
            await client.session("s", tenant="t").info()
        run = await client.submit("support", "Paint the house.", session="s", tenant="t")
        await client.submit("support", "And the door.", session="s", tenant="t")
        know(hand, "t:s", KNOWN.to_bytes())

        info = await client.session("s", tenant="t").info()
        assert (info.id, info.tenant, info.active, info.waiting, info.runs) == ("s", "t", run.id, 1, 2)
        assert (info.first_task, info.summary) == (KNOWN.first_task, KNOWN.summary)
        assert (info.memory, info.open_questions) == (("red",), ("Which wall?",))
        assert info.to_json()["memory"] == ["red"]
        assert (await client.sessions()).sessions == (info,)
        with pytest.raises(SessionNotFound):
            await client.session("s").info()

    play(scene)


def test_a_session_that_cannot_be_read_is_named_and_spoils_no_list(play: Play, hand: Hand) -> None:
    async def scene(client: AsyncClient) -> None:
        await client.submit("support", "x", session="broken")
        await client.submit("support", "x", session="well")
        know(hand, ":broken", b"{")

        page = await client.sessions()
        assert ([one.id for one in page.sessions], page.broken) == (["well"], ("broken",))
        with pytest.raises(BrokenRecord):
            await client.session("broken").info()

    play(scene)


def test_a_session_forgets_and_its_runs_stay(play: Play, hand: Hand) -> None:
    async def scene(client: AsyncClient) -> None:
        run = await client.submit("support", "x", session="s", tenant="t")
        session = client.session("s", tenant="t")
        with pytest.raises(Conflict, match=f"busy with run {run.id}"):
            await session.forget()
        hand.take(run.id).end(RunCompleted(output="done"))
        know(hand, "t:s", KNOWN.to_bytes())

        await session.forget()

        info = await session.info()
        assert (info.memory, info.summary, info.runs) == ((), "", 1)
        later = await client.submit("support", "y", session="s", tenant="t")
        assert hand.take(later.id).claimed.begun == (later.id,)
        assert (await run.result()).output == "done"
        with pytest.raises(SessionNotFound):
            await client.session("other").forget()

    play(scene)


def test_a_session_that_is_deleted_leaves_nothing_behind(play: Play, hand: Hand) -> None:
    async def scene(client: AsyncClient) -> None:
        for task in ("x", "y"):
            run = await client.submit("support", task, session="s", tenant="t")
            hand.finish(run.id)
        busy = await client.submit("support", "z", session="s", tenant="t")
        session = client.session("s", tenant="t")
        with pytest.raises(Conflict):
            await session.delete()
        await busy.cancel()

        await session.delete()

        with pytest.raises(SessionNotFound):
            await session.info()
        with pytest.raises(SessionNotFound):
            await session.delete()
        assert (await client.sessions()).sessions == ()
        assert (await client.runs(tenant="t")).runs == ()

    play(scene)


def test_a_session_is_deleted_whose_runs_were_deleted_before(play: Play, hand: Hand) -> None:
    async def scene(client: AsyncClient) -> None:
        run = await client.submit("support", "x", session="s", tenant="t")
        hand.finish(run.id)
        await run.delete()
        session = client.session("s", tenant="t")
        assert (await session.info()).runs == 0

        await session.delete()

        assert (await client.sessions()).sessions == ()
        with pytest.raises(SessionNotFound):
            await session.delete()
        with pytest.raises(SessionNotFound):
            await client.session("never", tenant="t").delete()

    play(scene)


def test_a_session_is_deleted_whose_runs_have_expired(play: Play, hand: Hand) -> None:
    """No sweep has taken them out of the indexes yet."""

    async def scene(client: AsyncClient) -> None:
        for task in ("x", "y"):
            hand.finish((await client.submit("support", task, session="s", tenant="t")).id)
        for run in (await client.runs(tenant="t")).runs:
            hand.redis.delete(hand.keys.run(run.id), hand.keys.events(run.id))

        await client.session("s", tenant="t").delete()

        assert (await client.sessions()).sessions == ()
        assert not hand.redis.exists(hand.keys.by_session("t:s"))

    play(scene)

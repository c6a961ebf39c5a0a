"""The store's contract holds on every server alike."""

from __future__ import annotations

import fakeredis
import pytest
import redis

from tests.conftest import BACKENDS, Servers
from tests.support.clients import SUPPORT, Backend, Play, backend_of, player
from tests.support.hand import Hand
from tests.support.runs import Desk
from tests.support.stage import Stage


@pytest.fixture(params=BACKENDS)
def desk(request: pytest.FixtureRequest, servers: Servers) -> Desk:
    """A desk at an empty server of each kind."""
    if request.param == "fakeredis":
        return Desk(fakeredis.FakeRedis(protocol=2))
    return Desk(redis.Redis(unix_socket_path=str(servers.get(request.param).socket), protocol=2))


@pytest.fixture(params=BACKENDS)
def stage(request: pytest.FixtureRequest, servers: Servers) -> Stage:
    """A desk and a store at an empty server of each kind."""
    return Stage(request.param, servers)


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest, servers: Servers, monkeypatch: pytest.MonkeyPatch) -> Backend:
    """An empty server of each kind, for clients."""
    return backend_of(request.param, servers, monkeypatch)


@pytest.fixture
def hand(backend: Backend) -> Hand:
    """The only worker there; it serves `support`."""
    made = Hand(backend.redis)
    made.publish(SUPPORT)
    return made


@pytest.fixture
def play(backend: Backend) -> Play:
    """Plays a scene with an open client."""
    return player(backend)

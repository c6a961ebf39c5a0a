"""The store's contract holds on every server alike."""

from __future__ import annotations

import fakeredis
import pytest
import redis

from tests.conftest import BACKENDS, Servers
from tests.support.runs import Desk


@pytest.fixture(params=BACKENDS)
def desk(request: pytest.FixtureRequest, servers: Servers) -> Desk:
    """A desk at an empty server of each kind."""
    if request.param == "fakeredis":
        return Desk(fakeredis.FakeRedis(protocol=2))
    return Desk(redis.Redis(unix_socket_path=str(servers.get(request.param).socket), protocol=2))

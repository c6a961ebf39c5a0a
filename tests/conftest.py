"""Servers that tests share, started once in a session when the first test asks for one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.support.servers import Server, programs

# How fast an example is says something of the machine, not of the code.
settings.register_profile("pawl", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pawl")

BACKENDS = ["fakeredis", *programs()]


class Servers:
    """One running server of each kind."""

    def __init__(self) -> None:
        self._running: dict[str, Server] = {}

    def get(self, name: str) -> Server:
        """The server of this name (`valkey`, `redis`), started if it is not running yet."""
        if name not in self._running:
            self._running[name] = Server(programs()[name]).start()
        return self._running[name]

    def close(self) -> None:
        for server in self._running.values():
            server.close()


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    found = Servers()
    yield found
    found.close()


@pytest.fixture
def redis_url(servers: Servers) -> str:
    """A real, empty server."""
    server = servers.get("redis" if "redis" in programs() else "valkey")
    server.empty()
    return server.url

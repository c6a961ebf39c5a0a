"""Every acceptance test has a server of its own, and real worker processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers import Server
from tests.support.site import Site, server_program


@pytest.fixture
def server() -> Iterator[Server]:
    """A server of the test's own, with an append-only file."""
    with Server(server_program(), appendonly=True) as running:
        yield running


def _opened(server: Server, folder: Path) -> Iterator[Site]:
    site = Site(server, folder)
    yield site
    site.close()
    print(site.logs())  # pytest shows it where the test failed


@pytest.fixture
def spoilt_site(server: Server, tmp_path: Path) -> Iterator[Site]:
    """A deployment without a worker, in whose store a test may spoil things."""
    yield from _opened(server, tmp_path)


@pytest.fixture
def forgetful_site(tmp_path: Path) -> Iterator[Site]:
    """A deployment without a worker, whose server forgets what it was not told to save."""
    with Server(server_program()) as server:
        yield from _opened(server, tmp_path)


@pytest.fixture
def site(spoilt_site: Site) -> Iterator[Site]:
    """A deployment without a worker. When the test is over, the store must be as it has to be."""
    yield spoilt_site
    spoilt_site.check()

"""What the documents' tests share: a deployment of the test's own, with real worker processes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.servers import Server, programs
from tests.support.site import Site


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    """A deployment without a worker. When the test is over, the store must be as it has to be."""
    found = programs()
    with Server(found.get("redis", found["valkey"]), appendonly=True) as server:
        opened = Site(server, tmp_path)
        yield opened
        opened.close()
        opened.check()

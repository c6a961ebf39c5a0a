"""One deployment, opened: which Redis, which keys, which figures. Clients, workers and schedulers all begin here."""

from redis import Redis as BlockingRedis
from redis.asyncio import Redis

from scheduler.connection import connect, connect_blocking
from scheduler.embedded import Server, acquire
from scheduler.keys import Keys
from scheduler.policy import Policy
from scheduler.scripts import Scripts
from scheduler.settings import Settings


class Deployment:
    """What the settings of a deployment come to. Close it when it is no longer used.

    Raises:
        ConfigurationError, StoreUnavailable: There is no Redis to use; the message says what to do.
    """

    def __init__(self, settings: Settings | None = None) -> None:
        self.settings = settings or Settings.from_environment()
        self._server: Server = acquire(self.settings)
        self.keys = Keys(self.settings.namespace)
        self.scripts = Scripts(self.keys, policy_of(self.settings))

    @property
    def url(self) -> str:
        """Where its Redis is. May hold a password."""
        return self._server.url

    def connect(self, *, connections: int = 32) -> Redis:
        """A client for one event loop."""
        return connect(
            self.url,
            connections=connections,
            socket_timeout=self.settings.socket_timeout_seconds,
            connect_timeout=self.settings.connect_timeout_seconds,
        )

    def connect_blocking(self, *, connections: int = 8) -> BlockingRedis:
        """A client for threads."""
        return connect_blocking(
            self.url,
            connections=connections,
            socket_timeout=self.settings.socket_timeout_seconds,
            connect_timeout=self.settings.connect_timeout_seconds,
        )

    def close(self) -> None:
        """Gives an embedded server up."""
        self._server.close()


def policy_of(settings: Settings) -> Policy:
    """The store's figures, as the settings say them."""
    day = 24 * 60 * 60 * 1000
    return Policy(
        lease_ms=int(settings.lease_seconds * 1000),
        run_retention_ms=int(settings.run_retention_days * day),
        session_retention_ms=int(settings.session_retention_days * day),
        ledger_retention_ms=int(settings.ledger_retention_days * day),
    )

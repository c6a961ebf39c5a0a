"""One session, for code that is not async. Every method is that of `AsyncSession`, run to its end."""

from __future__ import annotations

from scheduler.client.async_session import AsyncSession
from scheduler.client.portal import PORTAL
from scheduler.client.session_info import SessionInfo


class Session:
    """A conversation of a tenant. Made by a client; see `AsyncSession` for what each method raises."""

    def __init__(self, session: AsyncSession) -> None:
        self._session = session

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.id!r}, tenant={self.tenant!r})"

    @property
    def id(self) -> str:
        """The session's name, as its tenant knows it."""
        return self._session.id

    @property
    def tenant(self) -> str:
        """Whose it is; '' where there are no tenants."""
        return self._session.tenant

    def info(self) -> SessionInfo:
        """The session as it stands now, with what it remembers."""
        return PORTAL.run(self._session.info())

    def forget(self) -> None:
        """Takes its memory away; earlier runs can still be looked at."""
        PORTAL.run(self._session.forget())

    def delete(self) -> None:
        """Removes it with its memory and all its runs."""
        PORTAL.run(self._session.delete())

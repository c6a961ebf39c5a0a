"""What happens to a run: the record in Redis, admission, delivery, recovery and the client.

from scheduler import Client

with Client() as pawl:
    run = pawl.submit("support", "Refund order 7")
    print(run.result(timeout=60).output)
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from scheduler.cards import AgentCard
    from scheduler.client import (
        AsyncClient,
        AsyncRunHandle,
        AsyncSession,
        Client,
        Request,
        RunHandle,
        RunInfo,
        RunPage,
        Session,
        SessionInfo,
        SessionPage,
        TenantUsage,
        UnknownAgentWarning,
        UsageRow,
    )
    from scheduler.lifecycle import Status
    from scheduler.rq_bridge import WorkerInfo
    from scheduler.sessions import OnBusy
    from scheduler.settings import Settings

__all__ = [
    "AgentCard",
    "AsyncClient",
    "AsyncRunHandle",
    "AsyncSession",
    "Client",
    "OnBusy",
    "Request",
    "RunHandle",
    "RunInfo",
    "RunPage",
    "Session",
    "SessionInfo",
    "SessionPage",
    "Settings",
    "Status",
    "TenantUsage",
    "UnknownAgentWarning",
    "UsageRow",
    "WorkerInfo",
]

_ELSEWHERE = {
    "AgentCard": "cards",
    "OnBusy": "sessions",
    "Settings": "settings",
    "Status": "lifecycle",
    "WorkerInfo": "rq_bridge",
}


def __getattr__(name: str) -> object:
    """Imports a public name when it is first asked for: what is imported brings Redis and RQ with it."""
    if name not in __all__:
        raise AttributeError(f"module 'scheduler' has no attribute {name!r}")
    value: object = getattr(import_module(f"scheduler.{_ELSEWHERE.get(name, 'client')}"), name)
    globals()[name] = value
    return value

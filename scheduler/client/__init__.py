"""The client: what code outside of workers uses to submit runs, to follow them and to tell them things."""

from scheduler.client.async_client import AsyncClient, RunPage, UnknownAgentWarning
from scheduler.client.async_handle import AsyncRunHandle
from scheduler.client.async_session import AsyncSession
from scheduler.client.client import Client
from scheduler.client.events import EventReader
from scheduler.client.handle import RunHandle
from scheduler.client.run_info import Request, RunInfo
from scheduler.client.session import Session
from scheduler.client.session_info import SessionInfo
from scheduler.client.session_reader import SessionPage
from scheduler.client.usage import UsageRow
from scheduler.tenants import TenantUsage

__all__ = [
    "AsyncClient",
    "AsyncRunHandle",
    "AsyncSession",
    "Client",
    "EventReader",
    "Request",
    "RunHandle",
    "RunInfo",
    "RunPage",
    "Session",
    "SessionInfo",
    "SessionPage",
    "TenantUsage",
    "UnknownAgentWarning",
    "UsageRow",
]

"""The figures that the store works with: leases, retention, sizes, the poison guard."""

from __future__ import annotations

from dataclasses import dataclass

from agent.errors import TooLarge

_DAY_MS = 24 * 60 * 60 * 1000


@dataclass(frozen=True, slots=True)
class Policy:
    """Times in milliseconds, sizes in bytes. The defaults are the product's."""

    lease_ms: int = 6_000
    run_retention_ms: int = 7 * _DAY_MS
    session_retention_ms: int = 30 * _DAY_MS
    ledger_retention_ms: int = 400 * _DAY_MS
    max_task_bytes: int = 256 * 1024
    max_event_bytes: int = 1024 * 1024
    max_state_bytes: int = 64 * 1024
    max_inbox: int = 1_000
    max_signals: int = 10_000
    max_calls: int = 3_000
    max_behind: int = 1_000
    crashes_at_a_step: int = 3
    crashes_in_all: int = 10
    defer_first_ms: int = 5_000
    defer_longest_ms: int = 60_000

    def check_task(self, size: int) -> None:
        """Raises TooLarge if a task of `size` bytes is beyond the limit."""
        if size > self.max_task_bytes:
            raise _too_large("task", size, self.max_task_bytes, "max_task_bytes")

    def check_event(self, size: int) -> None:
        """Raises TooLarge if an event or a signal of `size` bytes is beyond the limit."""
        if size > self.max_event_bytes:
            raise _too_large("event", size, self.max_event_bytes, "max_event_bytes")

    def check_state(self, size: int) -> None:
        """Raises TooLarge if a checkpoint of `size` bytes is beyond the limit."""
        if size > self.max_state_bytes:
            raise _too_large("checkpoint", size, self.max_state_bytes, "max_state_bytes")


def _too_large(what: str, size: int, limit: int, limit_name: str) -> TooLarge:
    return TooLarge(f"The {what} has {size:,} bytes, more than {limit_name} = {limit:,}.")

"""Every error that Pawl raises, as one tree. Choose an `except` clause from it.

    PawlError
    ├── ConfigurationError            the author must change something; raised before any work is done
    │   ├── ToolDefinitionError       (also TypeError) a function cannot become a tool
    │   ├── AgentDefinitionError      (also ValueError) an agent cannot work as declared
    │   ├── ContextTypeError          (also TypeError) the dependencies miss what a tool needs
    │   └── UnknownPriceError         a money limit with a model whose price is not known
    ├── ModelError                    one attempt to get a reply failed
    │   ├── ModelUnavailable          worth another attempt: 429, 5xx, connection, time-out, unreadable reply
    │   └── ModelRefusedRequest       not worth another attempt: 400, 401, 403, 404
    │       └── ContextExceeded       longer than the model can read: worth one with fewer messages
    ├── ToolError                     raised inside a tool: its text is what the model reads
    │   ├── InvalidArguments          the model's arguments do not fit the tool's schema
    │   ├── ToolTimeout               it took longer than its `timeout`
    │   └── UnrenderableResult        it was executed, but its result is neither text nor JSON
    ├── RunError                      a run did not (yet) come to a result
    │   ├── RunFailed
    │   ├── BudgetExceeded
    │   ├── RunCancelled
    │   └── RunWaiting                it waits for a person: answer its requests
    └── StoreError                    the run's record could not be read or written
        ├── StoreUnavailable          Redis cannot be reached or refuses: nothing was lost, try again
        ├── RunNotFound               never existed, or its retention is over
        ├── SessionNotFound           likewise
        ├── Conflict                  the request contradicts what is there (other task under one key, busy session)
        ├── NotResumable              only a failed or budget_exceeded run can be resumed
        ├── BrokenRecord              a record cannot be read; kept for inspection
        └── TooLarge                  beyond a written size limit; refused before sending

Control flow inside a worker is not an error and not in this tree: see `LeaseLost`, a BaseException that no tool can swallow.
"""

from collections.abc import Sequence


class PawlError(Exception):
    """Root of every error that Pawl raises."""


class ConfigurationError(PawlError):
    """The author must change something; the message says what."""


class ToolDefinitionError(ConfigurationError, TypeError):
    """A function cannot become a tool. Names the tool and the parameter."""


class AgentDefinitionError(ConfigurationError, ValueError):
    """An agent cannot work as declared."""


class ContextTypeError(ConfigurationError, TypeError):
    """The dependencies given to an agent miss the type that one of its tools asks for."""


class UnknownPriceError(ConfigurationError):
    """`max_cost_usd` was asked for with a model whose price is not known: unknown is not free."""


class ModelError(PawlError):
    """One attempt to get a reply from a model failed.

    Attributes:
        status: The HTTP status, where there was one.
        billed: True if the attempt may be billed (cut or timed out after the request was sent): it is charged as reserved.
    """

    def __init__(self, message: str, *, status: int | None = None, billed: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.billed = billed


class ModelUnavailable(ModelError):
    """Worth another attempt: 429, 5xx, connection errors, time-outs, replies that cannot be read.

    Attributes:
        retry_after: Seconds that the server asked to wait; None where it did not say.
    """

    def __init__(
        self, message: str, *, status: int | None = None, billed: bool = False, retry_after: float | None = None
    ) -> None:
        super().__init__(message, status=status, billed=billed)
        self.retry_after = retry_after


class ModelRefusedRequest(ModelError):
    """Not worth another attempt with the same request: 400, 401, 403, 404 and their like."""


class ContextExceeded(ModelRefusedRequest):
    """The request is longer than what the model can read: another attempt is worth it with fewer of the older messages."""


class ToolError(PawlError):
    """Raise it inside a tool to tell the model what went wrong, in words it can act on."""


class InvalidArguments(ToolError):
    """The arguments that the model wrote do not fit the tool's schema. Names each field by its path."""


class ToolTimeout(ToolError):
    """The tool took longer than its `timeout`. What it had done by then, or goes on to do in its thread, is unknown."""


class UnrenderableResult(ToolError):
    """The tool was executed, but its result cannot be shown as text or stored as JSON. No reason to execute it again."""


class RunError(PawlError):
    """A run did not come to a result.

    Attributes:
        run_id: The run.
        partial: The last text that the model wrote before the end, if any.
    """

    def __init__(self, message: str, *, run_id: str, partial: str | None = None) -> None:
        super().__init__(message)
        self.run_id = run_id
        self.partial = partial


class RunFailed(RunError):
    """The run ended as failed. `reason` is one of the words listed in `agent.events.RunFailed`."""

    def __init__(self, message: str, *, run_id: str, reason: str, partial: str | None = None) -> None:
        super().__init__(message, run_id=run_id, partial=partial)
        self.reason = reason


class BudgetExceeded(RunError):
    """A limit was reached. `limit` is its name, such as `max_steps`; `resume(budget=...)` goes on from there."""

    def __init__(self, message: str, *, run_id: str, limit: str, partial: str | None = None) -> None:
        super().__init__(message, run_id=run_id, partial=partial)
        self.limit = limit


class RunCancelled(RunError):
    """The run was cancelled."""


class RunWaiting(RunError):
    """The run waits for a person. `requests` holds the ids of what it asks, `questions` the same in words."""

    def __init__(
        self, message: str, *, run_id: str, requests: Sequence[str] = (), questions: Sequence[str] = ()
    ) -> None:
        super().__init__(message, run_id=run_id)
        self.requests = tuple(requests)
        self.questions = tuple(questions)


class StoreError(PawlError):
    """The run's record could not be read or written."""


class StoreUnavailable(StoreError):
    """Redis cannot be reached or refuses for now. Nothing was lost; the message says what to check."""


class RunNotFound(StoreError):
    """There is no such run: it never existed, or its retention is over."""


class SessionNotFound(StoreError):
    """There is no such session of this tenant: it never existed, or its days are over."""


class Conflict(StoreError):
    """The request contradicts what is there: another task under the same key, or a busy session."""


class NotResumable(StoreError):
    """Only a failed or budget_exceeded run can be resumed."""


class BrokenRecord(StoreError):
    """A record cannot be read. It is kept as it is, for inspection."""


class TooLarge(StoreError):
    """Something is beyond a written size limit. Refused before it was sent; the message names the limit."""


class LeaseLost(BaseException):
    """Another worker owns the run now. Unwinds this worker's work on it; a BaseException so that no tool swallows it."""

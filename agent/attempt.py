"""One attempt to get a model's reply. Never raises for the model client's sake: it may be anybody's code."""

import asyncio

from agent.errors import ModelError, ModelRefusedRequest, ModelUnavailable
from agent.models.base import ModelClient, ModelReply, ModelRequest
from agent.text import words_of


async def attempt(model: ModelClient, request: ModelRequest) -> ModelReply | ModelError:
    """The reply, or why there is none. An attempt that takes longer than the request's time-out may have been billed."""
    deadline = asyncio.timeout(request.timeout)
    try:
        async with deadline:
            return await model.complete(request)
    except ModelError as error:
        return error
    except TimeoutError as error:
        overdue = f"no reply within {request.timeout:g} s"
        words = overdue if deadline.expired() else f"TimeoutError: {error}"
        return ModelUnavailable(words, billed=True)
    except asyncio.CancelledError:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return ModelUnavailable("the call was cancelled by the model client's own code", billed=True)
    except BaseException as error:  # also what is meant to end a process: it would end the neighbours' runs as well
        return ModelRefusedRequest(words_of(error), billed=True)

"""Listens to what is published on a channel of Redis, whatever becomes of the connection."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Final, cast

import structlog
from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import RedisError

SILENCE_SECONDS: Final = 10.0
"""After so long without a word, the connection is asked whether it still lives; it has as long to answer."""

AGAIN_SECONDS: Final = 1.0

Message = dict[str, Any]


async def messages(redis: Redis, channel: str) -> AsyncGenerator[Message]:
    """Every message that arrives, for ever. Some may be missed: whoever listens must not depend on them."""
    log = structlog.get_logger("pawl.channels")
    while True:
        try:
            async with cast("Any", redis).pubsub() as listener:
                await listener.subscribe(channel)
                async for message in _heard(listener):
                    yield message
        except (RedisError, OSError) as error:
            log.info("channel_lost", channel=channel, error=str(error))
            await asyncio.sleep(AGAIN_SECONDS)


async def _heard(listener: Any) -> AsyncGenerator[Message]:
    """The messages of one connection. One that is half-open says nothing and fails at nothing."""
    asked = False
    while True:
        message: Message | None = await listener.get_message(timeout=SILENCE_SECONDS)
        if message is not None:
            asked = False
            if message["type"] == "message":
                yield message
        elif asked:
            raise RedisConnectionError(f"no answer in {SILENCE_SECONDS:g} s")
        else:
            await listener.ping()
            asked = True

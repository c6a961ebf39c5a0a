"""What time it is."""

from datetime import datetime
from zoneinfo import ZoneInfo

from agent.errors import ToolError
from agent.tools import tool


@tool(idempotent=True)
def now(time_zone: str = "UTC") -> str:
    """Tells the date and the time.

    Args:
        time_zone: A name of the IANA database, such as `Europe/Vienna`.
    """
    try:
        zone = ZoneInfo(time_zone)
    except (KeyError, ValueError, OSError) as error:  # unknown; not a name; the name of a folder of zones
        raise ToolError(
            f"There is no time zone {time_zone!r}. Names are such as UTC, Europe/Vienna or Asia/Shanghai."
        ) from error
    moment = datetime.now(zone)
    return f"{moment.isoformat(timespec='seconds')} ({moment:%A}, {time_zone})"

"""The function that the RQ job of a run names. A worker of Pawl never calls it; a stock worker of RQ does."""

from typing import NoReturn

from agent.errors import ConfigurationError


def run(run_id: str) -> NoReturn:
    """Says which worker the run needs. The run itself stays as it is: queued, and taken by the next worker of Pawl.

    Raises:
        ConfigurationError: Always.
    """
    raise ConfigurationError(
        f"The job of run {run_id} was taken by a stock worker of RQ, which cannot move a run. Let `pawl worker` serve this "
        "queue, and the stock worker others. The run is still queued."
    )

"""What keeps runs going when nobody looks after them: lost leases, lost rings, waits that are over, RQ's books.

Sweeps run in every worker and in `pawl scheduler`. A pass is bounded, and many processes may sweep at once: the script that
finds the work lets one through at a time, and every mend is a script of its own that may be sent again.
"""

from scheduler.sweeps.sweeper import Sweeper

__all__ = ["Sweeper"]

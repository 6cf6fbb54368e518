"""Which processes of this machine live."""

import psutil

from jobs.killers.identity import GRANULARITY, is_living


class LivingProcesses:
    """As the kernel knows them."""

    def lives(self, pid: int, since: float) -> bool:
        """Whether the process that had this pid at a time (epoch seconds) still runs; one that may not be looked at does."""
        try:
            process = psutil.Process(pid)
            return is_living(process) and process.create_time() - since <= GRANULARITY
        except (psutil.NoSuchProcess, ValueError, OverflowError):
            return False
        except psutil.AccessDenied:
            return True

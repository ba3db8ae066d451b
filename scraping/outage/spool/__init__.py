"""What was read while the database was away: a bounded queue in memory, mirrored to disk. Knows nothing of Django.

Guards against losing what the sources showed during an outage, also when the worker itself dies in it. Every update is
on disk before it counts as kept; a file belongs to the process that holds its lock, and passes to whoever finds it
free.
"""

from scraping.outage.spool.queue import Spool, SpoolLimits
from scraping.outage.spool.update import HeldMatch, Update

__all__ = ["HeldMatch", "Spool", "SpoolLimits", "Update"]

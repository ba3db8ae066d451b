"""The spool: readings made while the database was unreachable, in a bounded queue mirrored to disk. Without Django.

Guards against losing readings of an outage, also when the worker itself dies in it. Every update is on disk before it
counts as kept. A file belongs to the process that holds its lock; another process adopts it when the lock is free.
"""

from scraping.outage.spool.queue import Spool, SpoolLimits
from scraping.outage.spool.update import HeldMatch, Update

__all__ = ["HeldMatch", "Spool", "SpoolLimits", "Update"]

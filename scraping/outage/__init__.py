"""What a worker does while the database is away: poll on what it holds, keep what it reads, write it later.

Guards against a database outage becoming an outage of the data. Nothing is claimed and nothing is finished meanwhile;
what was read goes to the spool, and from there into the database when it is back, in order, once.
"""

from scraping.outage.holdings import Held, Holdings
from scraping.outage.keeper import OutageKeeper

__all__ = ["Held", "Holdings", "OutageKeeper"]

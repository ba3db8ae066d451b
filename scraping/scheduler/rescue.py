"""Tasks of workers that fell silent go back into the journal."""

from __future__ import annotations

import logging
from datetime import datetime

from scraping import journal, policies

logger = logging.getLogger(__name__)


def rescue_expired(now: datetime) -> int:
    rescued = journal.rescue(max_rescues=policies.current().max_rescues, now=now)
    if rescued:
        logger.warning("%d tasks taken back from silent workers", rescued, extra={"action": "tasks_rescued"})
    return rescued

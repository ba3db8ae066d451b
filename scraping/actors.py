"""Dramatiq's only actor. A message is a hint that carries a task's id; it is never retried, delayed or remembered."""

from __future__ import annotations

import logging

import dramatiq
from django.db import close_old_connections

from scraping.scheduler.hint import QUEUE
from scraping.scrape import scrape
from scraping.worker import current_engine

logger = logging.getLogger(__name__)


@dramatiq.actor(queue_name=QUEUE)
def run_task(task_id: int) -> None:
    try:
        # A connection that broke while the thread was idle stays broken until it is closed, health checks or not.
        close_old_connections()
        engine = current_engine()
        if engine.takes_work:
            scrape(task_id, engine)
    except Exception:  # the journal knows the task is not finished; the broker must not remember anything
        logger.exception("Task %s could not be run; it will be hinted again", task_id, extra={"action": "task_not_run"})
    finally:
        close_old_connections()

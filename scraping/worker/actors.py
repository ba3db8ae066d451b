"""Dramatiq's only actor. A message is a hint that carries tasks' ids; it is never retried, delayed or remembered."""

from __future__ import annotations

import logging

import dramatiq
from django.db import close_old_connections

from scraping.worker.batch import poll
from scraping.worker.process import current_engine
from scraping.worker.scrape import scrape
from victoryline.lib.hint_broker import QUEUE

logger = logging.getLogger(__name__)


@dramatiq.actor(queue_name=QUEUE)
def run_task(*task_ids: int) -> None:
    try:
        # A connection that broke while the thread was idle stays broken until it is closed, health checks or not.
        close_old_connections()
        engine = current_engine()
        if engine.takes_work:
            poll(task_ids, engine) if len(task_ids) > 1 else scrape(task_ids[0], engine)
    except Exception:  # the journal knows the task is not finished; the broker must not remember anything
        logger.exception(
            "Tasks %s could not be run; they will be hinted again", task_ids, extra={"action": "task_not_run"}
        )
    finally:
        close_old_connections()

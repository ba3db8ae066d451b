"""Jobs: a round or a list of matches that was requested. Sole writer of ScrapeJob and JobItem.

Guards against a batch that ends incomplete without notice: each expected match is one row, written in one transaction
with the tasks that read them and before the first of them runs (`start`, `lifecycle`). The number of expected matches
never shrinks; a match is done when its task is, and until then it is listed as missing, with the reason (`progress`).
`submissions` are matches that consumers send to us; `sofascore_service` is the Python interface for line-ups.
"""

from scraping.jobs.lifecycle import (
    KeyReused,
    Refused,
    close_finished,
    expect,
    refuse_half,
    reopen,
    retry_failed,
)
from scraping.jobs.progress import JobState, JobView, view, views
from scraping.jobs.start import MAX_URLS, Started, start_round, start_urls
from scraping.models import Standing

"""Jobs: a round or a list of matches that somebody asked for. Sole writer of ScrapeJob and JobItem.

Guards against a batch that ends short and nobody knows: what a job expects is one row a match, written in one
transaction with the tasks that read them and before the first of them runs. Expected never shrinks; a match is done
when its task is, and until then it is listed as missing, with the reason.
"""

from scraping.jobs.document import document, summary
from scraping.jobs.ending import close_finished, keep_outcome, reopen
from scraping.jobs.expecting import expect
from scraping.jobs.progress import ItemView, JobState, JobView, Progress, Standing, view, views
from scraping.jobs.refusal import KeyReused, Refused
from scraping.jobs.retrying import retry_failed
from scraping.jobs.starting import MAX_URLS, Started, start_round, start_urls
from scraping.jobs.whole import refuse_half

__all__ = [
    "MAX_URLS",
    "ItemView",
    "JobState",
    "JobView",
    "KeyReused",
    "Progress",
    "Refused",
    "Standing",
    "Started",
    "close_finished",
    "document",
    "expect",
    "keep_outcome",
    "refuse_half",
    "reopen",
    "retry_failed",
    "start_round",
    "start_urls",
    "summary",
    "view",
    "views",
]

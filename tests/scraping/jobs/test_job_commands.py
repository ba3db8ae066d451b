"""The command `job`: start a round or URLs, show a job, retry failed tasks."""

from __future__ import annotations

import io
from typing import Any

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError
from django.utils import timezone

from scraping.errors import LayoutChanged
from scraping.models import ScrapeJob, ScrapeTask, TaskState
from scraping.scheduler.upkeep import close_finished_jobs
from tests.factories import make_source
from tests.scraping.rounds import IDS, RoundReader, engine_of, make_due, run_due, url_of

pytestmark = [pytest.mark.django_db, pytest.mark.both, pytest.mark.requirement("ZT-7")]

ROUND = ("sofascore", "tournament=325", "season=87678", "round=12")


@pytest.fixture(autouse=True)
def source() -> Any:
    return make_source("sofascore")


def output_of(*words: str, **options: Any) -> str:
    out = io.StringIO()
    call_command(*words, stdout=out, **options)
    return out.getvalue()


def run(outcomes: Any = None) -> None:
    engine = engine_of(RoundReader(outcomes=outcomes))
    for _ in range(4):
        run_due(engine)
        make_due()
    close_finished_jobs(timezone.now())


class TestRound:
    def test_starts_a_round_and_prints_its_job(self) -> None:
        text = output_of("job", "round", *ROUND)
        job = ScrapeJob.objects.get()
        assert text.startswith(f"Job {job.pk}: Sofascore: tournament 325, season 87678, round 12.")
        assert "listing its matches" in text
        assert job.requested_by == "command line"

    def test_repeated_returns_the_open_job(self) -> None:
        output_of("job", "round", *ROUND)
        assert "nothing new was started" in output_of("job", "round", *ROUND)
        assert ScrapeJob.objects.count() == 1

    @pytest.mark.parametrize(
        ("words", "why"),
        [
            (("sofascore", "round"), "not a name and a number"),
            (("sofascore", "round=x"), "not a name and a number"),
            (("sofascore", "round=1"), "tournament is missing"),
            (("nowhere", "round=1"), "there is no source 'nowhere'"),
            ((*ROUND, "--matches", "0"), "must be 1 or more"),
        ],
    )
    def test_names_the_reason_of_a_refusal(self, words: tuple[str, ...], why: str) -> None:
        with pytest.raises(CommandError, match=why):
            output_of("job", "round", *words)
        assert not ScrapeJob.objects.exists()


class TestUrls:
    def test_starts_a_job(self) -> None:
        assert "0 of 2: 2 waiting" in output_of("job", "urls", url_of(IDS[0]), url_of(IDS[1]))
        assert ScrapeJob.objects.get().items.count() == 2

    def test_names_each_bad_address(self) -> None:
        with pytest.raises(CommandError, match=r"(?s)Nothing was started\.\n  https://evil.example/: .*\n  x: "):
            output_of("job", "urls", url_of(IDS[0]), "https://evil.example/", "x")
        assert not ScrapeJob.objects.exists()


class TestShow:
    def test_shows_what_is_missing_and_why(self) -> None:
        output_of("job", "round", *ROUND)
        job = ScrapeJob.objects.get()
        run({IDS[0]: LayoutChanged("the page has changed")})
        text = output_of("job", "show", str(job.pk))
        assert f"Job {job.pk} (incomplete)" in text
        assert "9 of 10: 9 done, 1 dead" in text
        assert f"sofascore_{IDS[0]}  dead" in text
        assert "the page has changed" in text

    def test_watched_to_the_end_fails_where_something_is_missing(self) -> None:
        output_of("job", "round", *ROUND)
        job = ScrapeJob.objects.get()
        run({IDS[0]: LayoutChanged("the page has changed")})
        with pytest.raises(CommandError, match=f"manage.py task retry --job {job.pk}"):
            output_of("job", "show", str(job.pk), "--watch")
        output_of("task", "retry", "--job", str(job.pk))
        run()
        assert "10 of 10: 10 done" in output_of("job", "show", str(job.pk), "--watch")

    def test_refuses_an_unknown_job(self) -> None:
        with pytest.raises(CommandError, match="There is no job 99"):
            output_of("job", "show", "99")


class TestRetry:
    @pytest.fixture
    def job(self) -> ScrapeJob:
        output_of("job", "round", *ROUND)
        run({IDS[0]: LayoutChanged("the page has changed"), IDS[1]: RuntimeError("a bug")})
        return ScrapeJob.objects.get()

    def test_a_dry_run_changes_nothing(self, job: ScrapeJob) -> None:
        assert "Would retry 2 tasks." in output_of("task", "retry", "--job", str(job.pk), "--dry-run")
        assert ScrapeTask.objects.filter(state=TaskState.DEAD).count() == 2
        assert "Retried 1 task." in output_of("task", "retry", "--error-class", "bug", "--source", "sofascore")
        assert "Retried 1 task." in output_of("task", "retry", "--job", str(job.pk))
        assert "Retried 0 tasks." in output_of("task", "retry", "--job", str(job.pk))

    def test_names_the_reason_why_a_task_was_not_retried(self, job: ScrapeJob) -> None:
        output_of("job", "urls", url_of(IDS[0]))
        text = output_of("task", "retry", "--job", str(job.pk))
        assert "Retried 1 task.\nRefused: 1." in text
        assert "another task for the same match is open already" in text

    def test_needs_a_filter(self) -> None:
        with pytest.raises(CommandError, match="no filter"):
            output_of("task", "retry")

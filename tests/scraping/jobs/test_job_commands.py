"""The commands: start a round or addresses, look at a job, retry what failed."""

from __future__ import annotations

import io
import json
from pathlib import Path
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


def said(*words: str, **options: Any) -> str:
    out = io.StringIO()
    call_command(*words, stdout=out, **options)
    return out.getvalue()


def run(outcomes: Any = None) -> None:
    engine = engine_of(RoundReader(outcomes=outcomes))
    for _ in range(4):
        run_due(engine)
        make_due()
    close_finished_jobs(timezone.now())


class TestScrapeRound:
    def test_starts_a_round_and_says_which_job_it_is(self) -> None:
        text = said("scrape_round", *ROUND)
        job = ScrapeJob.objects.get()
        assert text.startswith(f"Job {job.pk}: Sofascore: tournament 325, season 87678, round 12.")
        assert "looking up its matches" in text
        assert job.requested_by == "command line"

    def test_twice_while_it_is_open_is_one_job(self) -> None:
        said("scrape_round", *ROUND)
        assert "nothing new was started" in said("scrape_round", *ROUND)
        assert ScrapeJob.objects.count() == 1

    @pytest.mark.parametrize(
        ("words", "why"),
        [
            (("sofascore", "round"), "not a name and a number"),
            (("sofascore", "round=x"), "not a name and a number"),
            (("sofascore", "round=1"), "tournament is missing"),
            (("nowhere", "round=1"), "there is no source 'nowhere'"),
            ((*ROUND, "--matches", "0"), "must be from 1 up"),
        ],
    )
    def test_says_why_not(self, words: tuple[str, ...], why: str) -> None:
        with pytest.raises(CommandError, match=why):
            said("scrape_round", *words)
        assert not ScrapeJob.objects.exists()


class TestScrapeUrls:
    def test_takes_arguments_a_file_and_standard_input(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        file = tmp_path / "urls"
        file.write_text(f"# of today\n\n{url_of(IDS[1])}\n")
        monkeypatch.setattr("sys.stdin", io.StringIO(f"{url_of(IDS[2])}\n"))
        text = said("scrape_urls", url_of(IDS[0]), "-", "--file", str(file))
        assert "0 of 3: 3 waiting" in text
        assert ScrapeJob.objects.get().items.count() == 3

    def test_names_each_bad_address(self) -> None:
        with pytest.raises(CommandError, match=r"(?s)Nothing was started\.\n  https://evil.example/: .*\n  x: "):
            said("scrape_urls", url_of(IDS[0]), "https://evil.example/", "x")
        assert not ScrapeJob.objects.exists()

    def test_says_when_the_file_cannot_be_read(self, tmp_path: Path) -> None:
        with pytest.raises(CommandError, match="can't be read"):
            said("scrape_urls", "--file", str(tmp_path / "none"))


class TestJob:
    def test_shows_what_is_missing_and_why(self) -> None:
        said("scrape_round", *ROUND)
        job = ScrapeJob.objects.get()
        run({IDS[0]: LayoutChanged("the page has changed")})
        text = said("job", str(job.pk))
        assert f"Job {job.pk} (incomplete)" in text
        assert "[###########################...] 9 of 10: 9 done, 1 dead" in text
        assert f"sofascore_{IDS[0]}  dead" in text
        assert "the page has changed" in text

    def test_as_json_is_what_the_api_answers(self) -> None:
        said("scrape_urls", url_of(IDS[0]))
        body = json.loads(said("job", str(ScrapeJob.objects.get().pk), "--json"))
        assert (body["expected"], body["missing"][0]["key"]) == (1, f"sofascore_{IDS[0]}")

    def test_watched_to_the_end_fails_where_something_is_missing(self) -> None:
        said("scrape_round", *ROUND)
        job = ScrapeJob.objects.get()
        run({IDS[0]: LayoutChanged("the page has changed")})
        with pytest.raises(CommandError, match=f"manage.py retry_failed --job {job.pk}"):
            said("job", str(job.pk), "--watch")
        said("retry_failed", "--job", str(job.pk))
        run()
        assert "10 of 10: 10 done" in said("job", str(job.pk), "--watch")

    def test_without_a_number_lists_the_latest(self) -> None:
        assert "There are no jobs yet" in said("job")
        said("scrape_urls", url_of(IDS[0]))
        assert "1 match by address" in said("job")

    def test_that_is_not_there(self) -> None:
        with pytest.raises(CommandError, match="There is no job 99"):
            said("job", "99")


class TestRetryFailed:
    @pytest.fixture
    def job(self) -> ScrapeJob:
        said("scrape_round", *ROUND)
        run({IDS[0]: LayoutChanged("the page has changed"), IDS[1]: RuntimeError("a bug")})
        return ScrapeJob.objects.get()

    def test_says_first_what_it_would_do(self, job: ScrapeJob) -> None:
        assert "Would retry 2 tasks." in said("retry_failed", "--job", str(job.pk), "--dry-run")
        assert ScrapeTask.objects.filter(state=TaskState.DEAD).count() == 2
        assert "Retried 1 task." in said("retry_failed", "--error-class", "bug", "--source", "sofascore")
        assert "Retried 1 task." in said("retry_failed", "--job", str(job.pk))
        assert "Retried 0 tasks." in said("retry_failed", "--job", str(job.pk))

    def test_says_why_one_was_not_retried(self, job: ScrapeJob) -> None:
        said("scrape_urls", url_of(IDS[0]))
        text = said("retry_failed", "--job", str(job.pk))
        assert "Retried 1 task.\nNot retried: 1." in text
        assert "another task for the same match is open already" in text

    def test_must_be_told_which(self) -> None:
        with pytest.raises(CommandError, match="say which"):
            said("retry_failed")

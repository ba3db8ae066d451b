from django.urls import path

from scraping.api.changes import ChangesView
from scraping.api.cricket import LiveMatchesView, MatchInfoView
from scraping.api.history_views import MatchDeltaView, MatchSnapshotsView, MatchSnapshotView
from scraping.api.jobs import JobDetailView, JobListView, RetryFailedView, ScrapeView
from scraping.api.match_lists import MatchListView
from scraping.api.match_views import MatchConflictsView, MatchEventsView, MatchLineupsView, MatchView
from scraping.api.operations import PauseView, ResumeView, StopView, WatchView
from scraping.api.submissions import SubmissionView, SubmitView
from scraping.api.teams import TeamListView, TeamView

urlpatterns = [
    path("api/v1/matches", MatchListView.as_view(), name="matches"),
    path("api/v1/delta", ChangesView.as_view(), name="deltas"),
    path("api/v1/matches/<str:match_id>", MatchView.as_view(), name="match"),
    path("api/v1/matches/<str:match_id>/events", MatchEventsView.as_view(), name="match-events"),
    path("api/v1/matches/<str:match_id>/delta", MatchDeltaView.as_view(), name="match-delta"),
    path("api/v1/matches/<str:match_id>/snapshots", MatchSnapshotsView.as_view(), name="match-snapshots"),
    path("api/v1/matches/<str:match_id>/snapshots/<int:sequence>", MatchSnapshotView.as_view(), name="match-snapshot"),
    path("api/v1/matches/<str:match_id>/lineups", MatchLineupsView.as_view(), name="match-lineups"),
    path("api/v1/matches/<str:match_id>/conflicts", MatchConflictsView.as_view(), name="match-conflicts"),
    path("api/v1/matches/<str:match_id>/pause", PauseView.as_view(), name="match-pause"),
    path("api/v1/matches/<str:match_id>/resume", ResumeView.as_view(), name="match-resume"),
    path("api/v1/matches/<str:match_id>/watch", WatchView.as_view(), name="match-watch"),
    path("api/v1/matches/<str:match_id>/stop", StopView.as_view(), name="match-stop"),
    path("api/v1/teams", TeamListView.as_view(), name="teams"),
    path("api/v1/teams/<int:team_id>", TeamView.as_view(), name="team"),
    path("api/scrape", ScrapeView.as_view(), name="scrape"),
    path("api/scrape/jobs", JobListView.as_view(), name="scrape-jobs"),
    path("api/scrape/jobs/<str:job_id>", JobDetailView.as_view(), name="scrape-job"),
    path("api/scrape/retry-failed", RetryFailedView.as_view(), name="scrape-retry-failed"),
    path("cricket-data/match-info/<str:match_id>", MatchInfoView.as_view(), name="match-info"),
    path("cricket-data", SubmitView.as_view(), name="submit"),
    path("cricket-data/submissions/<str:submission_id>", SubmissionView.as_view(), name="submission"),
    path("cricket-data/live-matches", LiveMatchesView.as_view(), name="live-matches"),
]

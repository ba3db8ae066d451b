"""All tables of scraping, one aggregate a file."""

from scraping.models.breaker import Breaker, BreakerState, Forced, OutcomeBucket
from scraping.models.drift import FieldFill
from scraping.models.error import ErrorGroup, Evidence, EvidenceKind, ScrapeError
from scraping.models.event import EventAction, MatchEvent
from scraping.models.job import JobItem, JobKind, ScrapeJob, Standing
from scraping.models.lineup import Lineup, LineupPlayer, PlayerFigure, SnapshotType
from scraping.models.match import (
    POLLED_LIFECYCLES,
    Importance,
    Match,
    MatchLifecycle,
    MatchRef,
    Priority,
    ScraperStatus,
    match_key,
    match_keys,
)
from scraping.models.operation import OPEN_OPERATIONS, BulkOperation, OperationIds, OperationState
from scraping.models.pairing import Conflict, MatchArchive, PairingReview, PairingState, UnknownValue
from scraping.models.process import CommandKind, Lease, Worker, WorkerCommand
from scraping.models.scraper import HealthStatus, Scraper
from scraping.models.snapshot import Snapshot
from scraping.models.source import ReadWay, RobotsPolicy, Source, SourceOverride
from scraping.models.submission import Submission, SubmissionState
from scraping.models.task import OPEN_STATES, ScrapeTask, Stage, TaskState, TaskTransition
from scraping.models.team import Team, TeamAlias
from scraping.models.traffic import ProxySession, SourceDay, SourceRate

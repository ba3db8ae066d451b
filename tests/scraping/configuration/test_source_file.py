"""config/sources.yaml: checked, written into the database, without overwriting values set by operators."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from scraping.configuration import source_file
from scraping.configuration.source_file import SourceEntry, SourceFileError
from scraping.errors import ErrorClass
from scraping.models import JobKind, MatchRef, ScrapeJob, Source
from scraping.policies.retry import Dead, Failure, Retry, decide
from tests.factories import NOW, make_ref
from tests.scraping.builders import POLICIES
from victoryline.configuration import PROJECT_ROOT

pytestmark = pytest.mark.django_db

SHORT_FILE = """
sources:
  - domain_id: crex
    enabled: true
    precedence_weight: 100
    rate_limits: {max_concurrent_contexts: 30, min_interval_seconds: 0.5, burst_allowance: 50}
    adapter_class: adapters.crex_adapter.CrexAdapter
    metadata: {base_url: "https://crex.live", requires_js: true}
  - domain_id: mirror
    enabled: false
    rate_limits: {min_interval_seconds: 1.0}
    adapter_class: adapters.espn_adapter.EspnAdapter
    metadata: {base_url: "https://espncricinfo.com", requires_js: false}
"""
STADIUM = "http://127.0.0.1:9000"


def entry(**fields: Any) -> SourceEntry:
    values: dict[str, Any] = {"domain_id": "crex", "name": "Crex", "sport": "cricket", "base_url": "https://crex.com"}
    return SourceEntry(**values | fields)


def sync(one: SourceEntry, *, stadium: str = "", reset: bool = False) -> Source:
    (source,) = source_file.sync([one], stadium_url=stadium, is_reset=reset, now=NOW)
    source.refresh_from_db()
    return source


@pytest.mark.requirement("SO-7")
class TestRead:
    def test_the_projects_own_file(self) -> None:
        assert {"crex", "sofascore"} <= {one.domain_id for one in source_file.read(Path("config/sources.yaml"))}

    def test_adapter_class_and_metadata_name_adapter_and_address(self, tmp_path: Path) -> None:
        path = tmp_path / "sources.yaml"
        path.write_text(SHORT_FILE)
        crex, mirror = source_file.read(path)
        assert (crex.adapter_key, crex.name, crex.sport) == ("crex", "Crex", "cricket")
        assert (crex.base_url, crex.metadata) == ("https://crex.live", {"requires_js": True})
        assert crex.rate_limits.min_interval_seconds == 0.5
        assert (mirror.adapter_key, mirror.enabled, mirror.base_url) == ("espn", False, "https://espncricinfo.com")
        row = sync(crex)
        assert (row.base_url, row.metadata["requires_js"], row.is_enabled) == ("https://crex.live", True, True)
        changed = crex.model_copy(update={"metadata": {"requires_js": False}})
        assert sync(changed, reset=True).metadata["requires_js"] is False

    @pytest.mark.parametrize(
        ("text", "named"),
        [
            (
                "sources: [{domain_id: a, adapter_class: b.Nobody, base_url: https://b.example}]",
                "no adapter 'Nobody'; there are: CrexAdapter",
            ),
            (
                "sources: [{domain_id: crex, base_url: https://b.example, metadata: {api_key: x}}]",
                "api_key belongs into the environment",
            ),
            ("sources: [{domain_id: nobody, name: N, sport: s, base_url: https://b.example}]", "no adapter for nobody"),
            ("sources: [{domain_id: crex, name: N, sport: s}]", "base_url"),
            ("sources: [{domain_id: crex, name: N, sport: s, base_url: https://b.example, colour: red}]", "colour"),
            (
                "sources: [{domain_id: crex, name: N, sport: s, base_url: https://b.example, precedence_weight: 200}]",
                "precedence",
            ),
            (
                "sources: [{domain_id: pro, name: N, sport: s, base_url: https://b.example, adapter: me}]",
                "adapter for me",
            ),
            ("sources: [", "sources.yaml"),
            ("", "sources.yaml"),
        ],
    )
    def test_names_the_problem_of_an_invalid_file(self, tmp_path: Path, text: str, named: str) -> None:
        path = tmp_path / "sources.yaml"
        path.write_text(text)
        with pytest.raises(SourceFileError, match=named):
            source_file.read(path)

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("base_url", "b"),
            ("base_url", "ftp://crex.com"),
            ("base_url", "https://me:secret@crex.com"),
            ("token_url", "crex.com/token"),
            ("token_url", "javascript:alert(1)"),
            ("api_hosts", ["https://api.crex.com"]),
            ("api_hosts", ["api.crex.com/v1"]),
            ("api_hosts", ["*.crex.com"]),
            ("api_hosts", ["me@crex.com"]),
            ("api_hosts", [""]),
            ("api_hosts", "api.crex.com"),
            ("read_way", "guess"),
            ("robots_policy", "never"),
            ("daily_megabytes", -1),
            ("selectors", {"title": []}),
            ("selectors", {"title": [""]}),
            ("selectors", {"title": "h1"}),
        ],
    )
    def test_names_an_invalid_value(self, field: str, value: object) -> None:
        with pytest.raises(ValidationError) as failure:
            entry(**{field: value})
        assert {error["loc"][0] for error in failure.value.errors()} == {field}

    def test_hosts_are_bare_names_with_a_port_at_most(self) -> None:
        hosts = ["API.crex.com", "cdn.crex.com:8443", "127.0.0.1", "[::1]:8080", "::1"]
        assert entry(api_hosts=hosts).api_hosts == [host.lower() for host in hosts]

    def test_refuses_a_missing_file(self, tmp_path: Path) -> None:
        with pytest.raises(SourceFileError, match=r"sources\.yaml"):
            source_file.read(tmp_path / "sources.yaml")


@pytest.mark.requirement("SO-7")
class TestSync:
    def test_writes_what_is_missing_with_its_watch_list(self) -> None:
        source = sync(entry(enabled=True, precedence_weight=80))
        assert (source.key, source.base_url, source.is_enabled) == ("crex", "https://crex.com", True)
        assert source.precedence_weight == 80
        assert ScrapeJob.objects.get().kind == JobKind.WATCH

    def test_every_way_of_reading_has_its_column(self) -> None:
        """A reset restores every field that the file may have."""
        fields = {
            "adapter": "crex",
            "read_way": "visit",
            "robots_policy": "warn",
            "api_hosts": ["api.pro.example"],
            "allows_private_addresses": True,
            "uses_proxy": False,
            "daily_megabytes": 500,
            "token_url": "https://api.pro.example/token",
            "selectors": {"title": ["h1", "//h2"]},
        }
        pro = entry(domain_id="pro", base_url="https://pro.example", **fields)
        source = sync(pro)
        assert {name: getattr(source, name) for name in fields} == fields
        Source.objects.update(api_hosts=[], token_url="", uses_proxy=True, selectors={}, read_way="auto")
        source = sync(pro, reset=True)
        assert {name: getattr(source, name) for name in fields} == fields

    def test_is_idempotent(self) -> None:
        sync(entry())
        sync(entry())
        assert (Source.objects.count(), ScrapeJob.objects.count()) == (1, 1)

    def test_keeps_what_the_admin_has_set(self) -> None:
        sync(entry(enabled=True))
        Source.objects.update(is_enabled=False, max_concurrency=3)
        source = sync(entry(enabled=True))
        assert (source.is_enabled, source.max_concurrency) == (False, 3)

    def test_a_reset_brings_the_file_back_and_the_matches_along(self) -> None:
        ref = make_ref(source=sync(entry()), url="https://crex.com/match/13KM")
        Source.objects.update(max_concurrency=3)
        source = sync(entry(base_url="https://crex.live", enabled=True), reset=True)
        assert (source.base_url, source.max_concurrency, source.is_enabled) == ("https://crex.live", 30, True)
        assert MatchRef.objects.get(pk=ref.pk).url == "https://crex.live/match/13KM"


@pytest.mark.requirement("FS-11")
@pytest.mark.parametrize("key", ["sofascore", "sofascorecricket"])
def test_the_shipped_sofascore_rows_have_their_own_retries(key: str) -> None:
    """4 attempts, 2 s doubled, and up to 1 s of jitter, from the file to the decision."""
    (row,) = (one for one in source_file.read(PROJECT_ROOT / "config" / "sources.yaml") if one.domain_id == key)
    policy, chance = POLICIES.retry_for(sync(row)), random.Random(1)
    waits: dict[int, set[float]] = {charged: set() for charged in range(3)}
    for charged, found in waits.items():
        for _ in range(200):
            decision = decide(Failure(ErrorClass.TRANSIENT, "502", charged + 1, charged), policy, NOW, chance)
            assert isinstance(decision, Retry)
            found.add((decision.at - NOW).total_seconds())
    for base, found in zip((2, 4, 8), waits.values(), strict=True):
        assert base <= min(found) < base + 0.1 < base + 0.9 < max(found) <= base + 1
    assert isinstance(decide(Failure(ErrorClass.TRANSIENT, "502", 4, 3), policy, NOW, chance), Dead)


@pytest.mark.requirement("FR-002")
def test_a_row_may_have_the_three_attempts_of_the_optimisation_profile() -> None:
    """At once, after 2 to 4 s, after 4 to 8 s."""
    policy = POLICIES.retry_for(sync(entry(retry={"max_attempts": 3, "base_seconds": 2})))
    failures = [Failure(ErrorClass.TRANSIENT, "502", charged + 1, charged) for charged in range(3)]
    found = [decide(failure, policy, NOW, random.Random(1)) for failure in failures]
    waits = [(one.at - NOW).total_seconds() if isinstance(one, Retry) else type(one) for one in found]
    assert 2 <= waits[0] <= 4 <= waits[1] <= 8
    assert waits[2] is Dead


class TestStadium:
    def test_replaces_every_source_and_enables_it(self) -> None:
        source = sync(entry(), stadium=STADIUM)
        assert (source.base_url, source.is_enabled) == (f"{STADIUM}/crex", True)

    def test_matches_move_with_it_to_another_port(self) -> None:
        ref = make_ref(source=sync(entry(), stadium=STADIUM), url=f"{STADIUM}/crex/match/13KM")
        sync(entry(), stadium="http://127.0.0.1:9999/")
        assert MatchRef.objects.get(pk=ref.pk).url == "http://127.0.0.1:9999/crex/match/13KM"

    def test_an_operator_may_disable_a_source_there_too(self) -> None:
        sync(entry(), stadium=STADIUM)
        Source.objects.update(is_enabled=False)
        assert not sync(entry(), stadium=STADIUM).is_enabled

    def test_a_reset_in_the_stadium_leaves_it_in_the_stadium(self) -> None:
        ref = make_ref(source=sync(entry(), stadium=STADIUM), url=f"{STADIUM}/crex/match/13KM")
        source = sync(entry(), stadium=STADIUM, reset=True)
        assert (source.base_url, source.is_enabled) == (f"{STADIUM}/crex", True)
        assert MatchRef.objects.get(pk=ref.pk).url == f"{STADIUM}/crex/match/13KM"

    def test_without_the_stadium_the_real_address_is_back_and_as_careful_as_the_file(self) -> None:
        sync(entry(), stadium=STADIUM)
        source = sync(entry())
        assert (source.base_url, source.is_enabled) == ("https://crex.com", False)

    def test_writes_but_does_not_enable_a_source_without_matches(self) -> None:
        assert not sync(entry(in_stadium=False), stadium=STADIUM).is_enabled

    def test_a_token_service_of_the_site_moves_with_it(self) -> None:
        own = entry(token_url="https://crex.com/token/generate-token")
        assert sync(own, stadium=STADIUM).token_url == f"{STADIUM}/crex/token/generate-token"
        assert sync(own).token_url == "https://crex.com/token/generate-token"

    def test_a_token_service_elsewhere_stays_there(self) -> None:
        assert (
            sync(entry(token_url="https://crex.com.au/token"), stadium=STADIUM).token_url == "https://crex.com.au/token"
        )

    def test_private_addresses_are_allowed_there_only(self) -> None:
        assert sync(entry(), stadium=STADIUM).allows_private_addresses
        assert not sync(entry()).allows_private_addresses


class TestSitesOfTheStadium:
    """Sites without matches in the programme are disabled."""

    URL = "http://127.0.0.1:9"

    def sync(self, sites: list[str] | None, *, is_reset: bool = False) -> set[str]:
        entries = source_file.read(PROJECT_ROOT / "config" / "sources.yaml")
        found = source_file.sync(entries, stadium_url=self.URL, stadium_sites=sites, is_reset=is_reset, now=NOW)
        return {source.key for source in found if source.is_enabled and not source.is_pushed}

    def test_only_what_it_shows_is_enabled(self) -> None:
        assert self.sync(["crex", "espncricinfo"]) == {"crex", "espncricinfo"}

    def test_another_programme_enables_what_it_shows(self) -> None:
        self.sync(["crex"])
        assert self.sync(["crex", "sofascore"]) == {"crex", "sofascore"}

    def test_what_an_operator_switched_off_stays_off(self) -> None:
        self.sync(["crex", "sofascore"])
        Source.objects.filter(key="crex").update(is_enabled=False)
        assert self.sync(["crex", "sofascore"]) == {"sofascore"}

    def test_enables_all_where_the_sites_are_unknown(self) -> None:
        assert {"crex", "sofascore", "espn"} <= self.sync(None)


class TestPushedSource:
    """The source of submissions has no site: no adapter, no address and no watch."""

    def test_is_enabled_with_and_without_a_stadium(self) -> None:
        for stadium in ("", STADIUM):
            source = sync(self.own_entry(), stadium=stadium)
            assert (source.is_pushed, source.is_enabled) == (True, True)
            assert source.base_url == "https://sent-in.invalid"
        assert not ScrapeJob.objects.filter(kind=JobKind.WATCH).exists()

    def test_has_the_lowest_precedence(self) -> None:
        others = [one for one in self.entries() if one.domain_id != "pushed"]
        assert 0 < self.own_entry().precedence_weight < min(one.precedence_weight for one in others)

    def test_stays_disabled_by_an_operator(self) -> None:
        sync(self.own_entry())
        Source.objects.update(is_enabled=False)
        assert not sync(self.own_entry()).is_enabled
        assert sync(self.own_entry(), reset=True).is_enabled

    @staticmethod
    def entries() -> list[SourceEntry]:
        return source_file.read(PROJECT_ROOT / "config" / "sources.yaml")

    def own_entry(self) -> SourceEntry:
        (found,) = [one for one in self.entries() if one.domain_id == "pushed"]
        return found

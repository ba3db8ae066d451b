"""Admin pages of pairs, conflicts, aliases and unknown values, and the operators' decisions on pairs."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from monitoring.models import AuditEntry
from scraping.matches import conflicts
from scraping.matches.reconcile.choosing import reconcile
from scraping.matches.reconcile.states import FieldConflict, SourceView
from scraping.models import Match, PairingReview, PairingState, Source, TeamAlias
from tests.factories import cricket_state, make_match, make_ref, make_source, make_unread_match
from tests.scraping.builders import chasing, later, payload_of, read
from tests.scraping.due_tasks import open_due_tasks

pytestmark = [pytest.mark.django_db, pytest.mark.both]
SENT = {"_form_submitted": "on"}


@pytest.fixture
def review() -> PairingReview:
    """India against Australia at crex, and a possible duplicate at espn."""
    now = timezone.now()
    first = make_match(now=now)
    make_ref(first, source="crex", payload=first.payload, source_event_id="V1")
    second = make_unread_match(now=now, title="IND v AUS", series="Border Cup")
    make_ref(second, source="espn", captured_at=None, source_event_id="77")
    return PairingReview.objects.create(
        match=second, candidate=first, score=0.7, reasons=["75 minutes between the starts"], created_at=now
    )


def url(review: PairingReview, action: str) -> str:
    return reverse(f"admin:scraping_pairingreview_{action}", args=[review.pk])


class TestPairs:
    def test_both_are_shown_side_by_side(self, admin_client: Client, review: PairingReview) -> None:
        page = admin_client.get(url(review, "change")).content.decode()
        for text in ("India vs Australia", "IND v AUS", "Border Cup", "crex_V1", "espn_77", "75 minutes between"):
            assert text in page
        listed = admin_client.get(reverse("admin:scraping_pairingreview_changelist"), {"state__exact": "open"})
        assert "IND v AUS" in listed.content.decode()

    def test_merges_after_confirmation_with_an_audit_entry(
        self, admin_client: Client, review: PairingReview, django_capture_on_commit_callbacks
    ) -> None:
        question = admin_client.get(url(review, "join_one"), headers={"HX-Request": "true"}).content.decode()
        assert "cannot be undone" in question
        assert Match.objects.filter(merged_into=None).count() == 2
        with django_capture_on_commit_callbacks(execute=True):
            admin_client.post(url(review, "join_one"), SENT)
        review.refresh_from_db()
        assert (review.state, review.decided_by) == (PairingState.JOINED, "admin")
        (kept,) = Match.objects.filter(merged_into=None)
        assert kept.refs.count() == 2
        assert AuditEntry.objects.filter(actor="admin", action_type="join").count() == 1

    def test_keeps_two_matches_apart(self, admin_client: Client, review: PairingReview) -> None:
        admin_client.post(url(review, "keep_apart_one"), SENT)
        review.refresh_from_db()
        assert review.state == PairingState.APART
        assert AuditEntry.objects.filter(actor="admin", action_type="keep_apart").count() == 1

    def test_gives_the_reason_of_a_refusal(self, admin_client: Client, review: PairingReview) -> None:
        make_ref(review.match, source="crex")
        page = admin_client.post(url(review, "join_one"), SENT, follow=True).content.decode()
        assert "has both of them" in page
        assert Match.objects.filter(merged_into=None).count() == 2

    def test_needs_the_permission_to_change_matches(self, client: Client, review: PairingReview) -> None:
        viewer = User.objects.create_user("viewer", is_staff=True)
        viewer.user_permissions.add(Permission.objects.get(codename="view_pairingreview"))
        client.force_login(viewer)
        assert client.post(url(review, "join_one"), SENT).status_code == 403
        assert Match.objects.filter(merged_into=None).count() == 2


class TestTruth:
    @pytest.fixture
    def match(self) -> Match:
        now = timezone.now()
        state, other = (cricket_state(venue=venue).model_dump(mode="json") for venue in ("Perth", "Waca"))
        found = reconcile([SourceView("crex", 100, now, state), SourceView("espn", 80, now, other)])
        match = make_match(now=now, payload=found.state, provenance=found.provenance)
        make_ref(match)
        conflicts.note(match.pk, [FieldConflict("innings.1.runs", "crex", 187, "espn", 150, 19.8)], now=now)
        return match

    @pytest.mark.requirement("BX-5")
    def test_a_match_shows_provenance_and_other_values(self, admin_client: Client, match: Match) -> None:
        page = admin_client.get(reverse("admin:scraping_match_change", args=[match.pk])).content.decode()
        assert "espn: Waca" in page
        assert "<th>other sources</th>" in page
        assert "innings.1.runs" in page

    def test_conflicts_are_filtered_by_match_and_state(self, admin_client: Client, match: Match) -> None:
        table = reverse("admin:scraping_conflict_changelist")

        def shown(**query: str | int) -> int:
            return len(admin_client.get(table, query).context["cl"].result_list)

        assert (shown(match__id__exact=match.pk), shown(state="open"), shown(state="agreed")) == (1, 1, 0)
        conflicts.note(match.pk, (), now=timezone.now())
        assert (shown(state="open"), shown(state="agreed"), shown(chosen_source__exact="crex")) == (0, 1, 1)

    def test_a_conflict_shows_the_served_and_the_rejected_value(self, admin_client: Client, match: Match) -> None:
        listed = admin_client.get(reverse("admin:scraping_conflict_changelist")).content.decode()
        of_match = admin_client.get(reverse("admin:scraping_match_change", args=[match.pk])).content.decode()
        crex = reverse("admin:scraping_source_change", args=[Source.objects.get(key="crex").pk])
        for page in (listed, of_match):
            assert f'187 (<a class="underline" href="{crex}">crex</a>)' in page
            assert "150 (espn)" in page  # no source here has this key
            assert "19.8 %" in page

    def test_an_unconfirmed_score_is_shown(self, admin_client: Client, match: Match) -> None:
        Match.objects.update(provisional={"source": "espn", "score": "93/3"})
        page = admin_client.get(reverse("admin:scraping_match_change", args=[match.pk])).content.decode()
        assert "Provisional" in page
        assert "93/3" in page


class TestEmptyTables:
    @pytest.mark.parametrize(
        ("table", "words"),
        [
            ("conflict", "No conflicts so far"),
            ("pairingreview", "No pair needs a decision"),
            ("unknownvalue", "Every value that the sources sent is known"),
            ("lineup", "from 72 hours before the start"),
            ("playerfigure", "when a match has ended"),
            ("matcharchive", "No match has ended yet"),
        ],
    )
    def test_explain_their_content(self, admin_client: Client, table: str, words: str) -> None:
        page = admin_client.get(reverse(f"admin:scraping_{table}_changelist")).content.decode()
        assert words in page
        assert "Show all" not in page

    def test_say_that_no_row_matches_the_filter(self, admin_client: Client) -> None:
        page = admin_client.get(reverse("admin:scraping_conflict_changelist"), {"q": "nobody"}).content.decode()
        assert "No row fits the search and the filters" in page
        assert "Show all" in page
        assert "No two sources" not in page


class TestAliases:
    def add(self, client: Client, alias: str, name: str = "Australia") -> str:
        data = {"sport": "cricket", "alias": alias, "name": name}
        return client.post(reverse("admin:scraping_teamalias_add"), data, follow=True).content.decode()

    def test_are_stored_in_normalised_form(self, admin_client: Client) -> None:
        self.add(admin_client, "Baggy-Greens")
        assert TeamAlias.objects.get().squeezed == "baggygreens"

    @pytest.mark.parametrize(("alias", "said"), [("baggy greens", "There is this one already"), ("--", "letters")])
    def test_an_invalid_alias_is_refused(self, admin_client: Client, alias: str, said: str) -> None:
        self.add(admin_client, "Baggy-Greens")
        assert said in self.add(admin_client, alias, "Somebody else")
        assert TeamAlias.objects.count() == 1


@pytest.mark.requirement("SO-7")
class TestSourceOverride:
    """A change applies at once, without a restart."""

    def post(self, client: Client, **changes: object) -> None:
        page = reverse("admin:scraping_source_change", args=[make_source("crex").pk])
        form = client.get(page).context["adminform"].form
        values = {name: form.get_initial_for_field(field, name) for name, field in form.fields.items()}
        data = {name: "" if value is None else value for name, value in values.items()} | {"selectors": "{}"} | changes
        answer = client.post(page, {name: value for name, value in data.items() if value is not False})
        assert answer.status_code == 302

    @pytest.mark.parametrize(
        ("changes", "opened"),
        [
            ({}, 5),
            ({"is_enabled": False}, 0),
            ({"max_concurrency": 2}, 2),
            ({"burst_allowance": 3}, 3),
        ],
    )
    def test_applies_to_the_next_tick(self, admin_client: Client, changes: dict[str, object], opened: int) -> None:
        for _ in range(5):
            make_ref(source="crex")
        self.post(admin_client, **changes)
        assert open_due_tasks(timezone.now()) == opened

    def test_applies_to_the_next_reading(self, admin_client: Client) -> None:
        ref = make_ref(make_unread_match(), source="crex", captured_at=None)
        self.post(admin_client, min_interval_seconds=45)
        read(ref, payload_of(ref, chasing(96), at=later(1)), at=later(1))
        ref.refresh_from_db()
        assert ref.polling_interval_seconds == 45

    def test_a_source_with_a_higher_weight_is_chosen_at_its_next_reading(self, admin_client: Client) -> None:
        make_source("espn", precedence_weight=80)
        crex = make_ref(make_unread_match(), source="crex", captured_at=None)
        espn = make_ref(crex.match, source="espn", captured_at=None)
        for ref, runs in ((crex, 100), (espn, 96)):
            read(ref, payload_of(ref, chasing(runs), at=later(1)), at=later(1))
        crex.match.refresh_from_db()
        assert crex.match.payload["innings"][1]["runs"] == 96
        self.post(admin_client, precedence_weight=95)
        read(crex, payload_of(crex, chasing(101), at=later(2)), at=later(2))
        crex.match.refresh_from_db()
        assert crex.match.payload["innings"][1]["runs"] == 101

"""Every address of the admin and every operator action, against every role. A new address without a row here fails."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.contrib import admin
from django.contrib.auth.models import AnonymousUser, Group, Permission, User
from django.contrib.contenttypes.models import ContentType
from django.contrib.messages.storage.fallback import FallbackStorage
from django.contrib.sessions.backends.db import SessionStore
from django.core.exceptions import PermissionDenied
from django.core.management import call_command
from django.db import connection, transaction
from django.http import Http404, HttpRequest
from django.template.response import TemplateResponse
from django.test import Client, RequestFactory
from django.urls import URLPattern, URLResolver, resolve, reverse
from django.utils.http import urlencode

from scraping.journal import evidence
from scraping.matches import match_logs
from scraping.models import TeamAlias
from tests.admin.rows import make_everything
from victoryline.lib.operator_actions import OperatorActionsMixin
from victoryline.roles import ADMINISTRATOR, OPERATOR, VIEWER

pytestmark = pytest.mark.django_db
ANONYMOUS, CONSUMER, STAFF, NEVER = "anonymous", "a login that is no staff", "staff without a group", "never"
ROLES = (ANONYMOUS, CONSUMER, STAFF, VIEWER, OPERATOR, ADMINISTRATOR)
RANK = {role: rank for rank, role in enumerate((*ROLES, NEVER))}
# Of each table: the lowest role that may view it, add a row, and change one.
HISTORY = (VIEWER, NEVER, NEVER)
TABLES = {
    "auth_user": (ADMINISTRATOR, ADMINISTRATOR, ADMINISTRATOR),
    "auth_group": (ADMINISTRATOR, ADMINISTRATOR, ADMINISTRATOR),
    "axes_accessattempt": (ADMINISTRATOR, NEVER, NEVER),
    "axes_accesslog": (ADMINISTRATOR, NEVER, NEVER),
    "axes_accessfailurelog": (ADMINISTRATOR, NEVER, NEVER),
    "scraping_scraper": HISTORY,
    "scraping_worker": HISTORY,
    "scraping_workercommand": HISTORY,
    "scraping_breaker": HISTORY,
    "scraping_evidence": HISTORY,
    "scraping_scrapetask": HISTORY,
    "scraping_errorgroup": HISTORY,
    "scraping_scrapeerror": HISTORY,
    "scraping_scrapejob": HISTORY,
    "scraping_submission": HISTORY,
    "scraping_matchref": HISTORY,
    "scraping_snapshot": HISTORY,
    "scraping_matchevent": HISTORY,
    "scraping_lineup": HISTORY,
    "scraping_playerfigure": HISTORY,
    "scraping_matcharchive": HISTORY,
    "scraping_pairingreview": HISTORY,
    "scraping_teamalias": (VIEWER, OPERATOR, OPERATOR),
    "scraping_team": HISTORY,
    "scraping_conflict": HISTORY,
    "scraping_match": HISTORY,
    "scraping_source": (VIEWER, NEVER, ADMINISTRATOR),
    "scraping_unknownvalue": HISTORY,
    "scraping_bulkoperation": HISTORY,
    "scraping_proxysession": HISTORY,
    "scraping_sourceday": HISTORY,
    "scraping_fieldfill": HISTORY,
    "apiauth_consumer": (VIEWER, ADMINISTRATOR, ADMINISTRATOR),
    "apiauth_apikey": HISTORY,
    "apiauth_accesslog": HISTORY,
    "apiauth_usagehour": HISTORY,
    "monitoring_alert": HISTORY,
    "monitoring_auditentry": HISTORY,
    "monitoring_gradechange": HISTORY,
    "monitoring_healthlog": HISTORY,
    "monitoring_logentry": HISTORY,
}
# Operator actions on the page of a row, by the address of their dialog: the lowest role.
DIALOGS = {
    "scraping_worker_recycle_one": OPERATOR,
    "scraping_breaker_force_open_one": OPERATOR,
    "scraping_breaker_force_closed_one": OPERATOR,
    "scraping_breaker_reset_one": OPERATOR,
    "scraping_breaker_probe_one": OPERATOR,
    "scraping_scrapetask_retry_one": OPERATOR,
    "scraping_scrapetask_discard_one": OPERATOR,
    "scraping_scrapetask_cancel_one": OPERATOR,
    "scraping_errorgroup_retry_one": OPERATOR,
    "scraping_scrapeerror_resolve_one": OPERATOR,
    "scraping_errorgroup_resolve_one": OPERATOR,
    "scraping_errorgroup_resolve_next_one": OPERATOR,
    "scraping_errorgroup_assign_one": OPERATOR,
    "scraping_errorgroup_mute_one": OPERATOR,
    "scraping_errorgroup_unmute_one": OPERATOR,
    "scraping_scrapejob_start_round": OPERATOR,
    "scraping_scrapejob_start_urls": OPERATOR,
    "scraping_scrapejob_retry_one": OPERATOR,
    "scraping_pairingreview_join_one": OPERATOR,
    "scraping_pairingreview_keep_apart_one": OPERATOR,
    "scraping_teamalias_delete_one": ADMINISTRATOR,
    **{f"scraping_source_{name}_one": OPERATOR for name in ("pause", "limit", "restore", "disable", "enable")},
    "scraping_match_pause_one": OPERATOR,
    "scraping_match_resume_one": OPERATOR,
    "scraping_match_watch_one": OPERATOR,
    "scraping_match_end_watch_one": OPERATOR,
    "scraping_match_read_now_one": OPERATOR,
    "scraping_bulkoperation_abort_one": OPERATOR,
    "scraping_match_set_importance_one": OPERATOR,
    "apiauth_apikey_revoke_one": ADMINISTRATOR,
    "monitoring_alert_acknowledge_one": OPERATOR,
    "monitoring_alert_mute_one": OPERATOR,
    "monitoring_alert_unmute_one": OPERATOR,
}
# Every other address: the lowest role and the status of a GET.
OTHERS = {
    "apiauth_consumer_issue_key": (ADMINISTRATOR, 200),
    "apiauth_apikey_rotate_one": (ADMINISTRATOR, 200),
    "scraping_evidence_file": (VIEWER, 200),
    "scraping_evidence_download": (VIEWER, 200),
    "scraping_matcharchive_download": (VIEWER, 200),
    "scraping_bulkoperation_start": (OPERATOR, 200),
    "auth_user_password_change": (ADMINISTRATOR, 200),
    "index": (STAFF, 200),
    "search": (STAFF, 200),
    "autocomplete": (STAFF, 403),  # no form of the admin uses it
    "jsi18n": (STAFF, 200),
    "view_on_site": (STAFF, 404),
    "app_list": (VIEWER, 200),
    "password_change": (STAFF, 200),
    "password_change_done": (STAFF, 200),
    "login": (ANONYMOUS, 200),  # a redirect for staff
    "logout": (STAFF, 405),
}
FILLED = {"_form_submitted": "True", "minutes": "5", "reason": "tried by a test", "importance": "", "user": ""}


def patterns() -> Iterator[URLPattern]:
    for entry in admin.site.get_urls():
        yield from entry.url_patterns if isinstance(entry, URLResolver) else (entry,)


def expected() -> dict[str, tuple[str, int]]:
    rows = {**OTHERS, **{name: (role, 200) for name, role in DIALOGS.items()}}
    for table, (view, add, change) in TABLES.items():
        rows |= {f"{table}_{page}": (view, 200) for page in ("changelist", "change", "history")}
        rows[f"{table}_add"] = (add, 200)
        rows[f"{table}_delete"] = (NEVER, 403)
        rows[f"{table} by POST"] = (change, 200)
    rows["axes_accessattempt_delete"] = (ADMINISTRATOR, 200)  # ends a lock
    return rows


def address(name: str) -> str:
    if name == "app_list":
        return reverse("admin:app_list", args=["scraping"])
    if name == "scraping_bulkoperation_start":
        return reverse(f"admin:{name}", args=["scraping.match", "pause"])
    if name == "view_on_site":
        return reverse("admin:view_on_site", args=[ContentType.objects.get_for_model(User).pk, 1])
    table = next((one for one in TABLES if name.startswith(f"{one}_")), "")
    if not table or name in (f"{table}_changelist", f"{table}_add") or name.endswith(("_start_round", "_start_urls")):
        return reverse(f"admin:{name}")
    row = ContentType.objects.get_by_natural_key(*table.split("_")).model_class()._default_manager.order_by("pk").last()
    assert row is not None, f"tests.admin.rows makes no row of {table}"
    return reverse(f"admin:{name}", args=[row.pk])


@contextmanager
def no_writes() -> Iterator[None]:
    def refuse(execute: Callable[..., Any], sql: str, params: Any, many: bool, context: Any) -> Any:
        is_write = sql.lstrip().upper().startswith(("INSERT", "UPDATE", "DELETE"))
        assert not is_write or "django_session" in sql, sql
        return execute(sql, params, many, context)

    with connection.execute_wrapper(refuse):
        yield


@pytest.fixture
def console(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row in every table, with its files; pages are not rendered, `test_pages` does that."""
    make_everything()
    User.objects.create_user("kim")
    AccessAttempt.objects.create(username="x", failures_since_start=1)
    AccessLog.objects.create(username="x")
    AccessFailureLog.objects.create(username="x")
    monkeypatch.setattr(TemplateResponse, "rendered_content", "")
    monkeypatch.setattr(evidence, "content_of", lambda row: b"x")
    monkeypatch.setattr(match_logs, "content_of", lambda row: b"x")


def make_user(role: str) -> User | AnonymousUser:
    if role == ANONYMOUS:
        return AnonymousUser()
    user = User.objects.create_user(role.replace(" ", "-"), is_staff=role != CONSUMER)
    if role in (VIEWER, OPERATOR, ADMINISTRATOR):
        user.groups.add(Group.objects.get(name=role))
    return user


def signed_in(role: str) -> Client:
    client, user = Client(), make_user(role)
    if isinstance(user, User):
        client.force_login(user)
    return client


def status(user: User | AnonymousUser, method: str, page: str) -> int:
    """Returns the status of the function that a request reaches; without the middleware, which checks no permission."""
    request = RequestFactory().generic(
        method, page, urlencode(FILLED), content_type="application/x-www-form-urlencoded", headers={"HX-Request": "1"}
    )
    request.user, request.session = user, SessionStore()
    request._dont_enforce_csrf_checks = True  # type: ignore[attr-defined]
    request._messages = FallbackStorage(request)  # type: ignore[attr-defined]
    request.resolver_match = found = resolve(page)
    try:
        return int(found.func(request, *found.args, **found.kwargs).status_code)
    except PermissionDenied:
        return 403
    except Http404:
        return 404


def refusal(role: str, name: str = "") -> int:
    if RANK[role] < RANK[STAFF]:
        return 302  # to the login
    return 404 if name == "app_list" else 403


def test_every_address_has_a_row() -> None:
    names = {pattern.name for pattern in patterns() if pattern.name}
    assert names == {name for name in expected() if not name.endswith(" by POST")}
    unnamed = {str(pattern.pattern) for pattern in patterns() if not pattern.name}
    assert unnamed == {"<path:object_id>/", "(?P<url>.*)$"}  # redirects to the page of a row, and 404


@pytest.mark.parametrize("role", ROLES)
def test_every_address_against_a_role(console: None, role: str) -> None:
    user, wrong = make_user(role), []
    for name, (lowest, good) in expected().items():
        page = address(name.replace(" by POST", "_change"))
        methods = ("POST",) if name.endswith(" by POST") else ("GET", "POST")
        if RANK[role] < RANK[lowest]:
            with no_writes():
                got = {method: status(user, method, page) for method in methods}
            wrong += [f"{one} {page}: {code}" for one, code in got.items() if code != refusal(role, name)]
        elif "GET" in methods:
            code = status(user, "GET", page)
            wrong += [f"GET {page}: {code}"] if code != good and name != "login" else []
        elif (code := status(user, "POST", page)) == 403:
            wrong.append(f"POST {page}: {code}")
    assert not wrong


@pytest.mark.parametrize("role", ROLES)
def test_every_dialog_against_a_role(console: None, role: str) -> None:
    """A filled dialog is carried out, or refused and nothing is written."""
    user = make_user(role)
    for name, lowest in DIALOGS.items():
        page = address(name)
        if RANK[role] >= RANK[lowest]:
            with transaction.atomic():
                assert status(user, "POST", page) in (200, 302), page
                transaction.set_rollback(True)
        else:
            with no_writes():
                assert status(user, "POST", page) == refusal(role), page


@pytest.mark.parametrize("role", ROLES)
def test_every_operator_action_against_a_role(console: None, role: str) -> None:
    """Checked in the function that every page reaches, whatever a list offers or a form sends."""
    request: HttpRequest = RequestFactory().post("/")
    request.user = make_user(role)
    tried = 0
    for table, model_admin in admin.site._registry.items():
        if not isinstance(model_admin, OperatorActionsMixin):
            continue
        may = any(
            RANK[role] >= RANK[lowest]
            for name, lowest in DIALOGS.items()
            if name.startswith(f"{table._meta.app_label}_{table._meta.model_name}_") and not name.endswith("_round")
        )
        for action in model_admin.operator_actions:
            tried += 1
            assert model_admin.has_operate_permission(request) is may
            if not model_admin.has_operate_permission(request):
                with no_writes(), pytest.raises(PermissionDenied):
                    model_admin.apply(request, action, [1], {"minutes": 5, "reason": "x", "importance": ""})
    assert tried > 20


@pytest.mark.parametrize(("role", "answer"), [(ANONYMOUS, 403), (STAFF, 403), (VIEWER, 403), (OPERATOR, 202)])
def test_recycling_by_post(console: None, role: str, answer: int) -> None:
    assert signed_in(role).post("/admin/recycle").status_code == answer


class TestGroups:
    def test_each_role_may_do_what_the_one_below_may(self) -> None:
        viewer, operator, administrator = (
            set(Group.objects.get(name=name).permissions.values_list("pk", flat=True))
            for name in (VIEWER, OPERATOR, ADMINISTRATOR)
        )
        assert viewer < operator < administrator

    def test_keeps_what_an_installation_has_added(self) -> None:
        operator = Group.objects.get(name=OPERATOR)
        ours = set(operator.permissions.all())
        extra = Permission.objects.get(codename="add_group")
        operator.permissions.add(extra)
        operator.permissions.remove(Permission.objects.get(codename="change_match"))
        call_command("migrate", verbosity=0)
        assert set(operator.permissions.all()) == ours | {extra}
        assert Group.objects.filter(name=OPERATOR).count() == 1


class TestAdministrators:
    def test_make_no_superusers(self, console: None) -> None:
        client, root = signed_in(ADMINISTRATOR), User.objects.create_superuser("root")
        assert client.post(reverse("admin:auth_user_password_change", args=[root.pk]), {}).status_code == 403
        assert client.post(reverse("admin:auth_user_change", args=[root.pk]), {}).status_code == 403
        me = User.objects.get(username=ADMINISTRATOR)
        form = {"username": me.username, "is_staff": "on", "is_active": "on", "is_superuser": "on"}
        joined = {"date_joined_0": "2026-01-01", "date_joined_1": "00:00"}
        assert client.post(reverse("admin:auth_user_change", args=[me.pk]), {**form, **joined}).status_code == 302
        me.refresh_from_db()
        assert not me.is_superuser


def test_deleting_asks_for_a_reason_and_is_in_the_audit(console: None) -> None:
    from monitoring.models import AuditEntry

    client, row = signed_in(ADMINISTRATOR), TeamAlias.objects.get()
    page = reverse("admin:scraping_teamalias_delete_one", args=[row.pk])
    assert client.post(page, {**FILLED, "reason": ""}).status_code == 200
    assert TeamAlias.objects.exists()
    assert client.post(page, FILLED)["Location"] == reverse("admin:scraping_teamalias_changelist")
    entry = AuditEntry.objects.get(action_type="alias_deleted")
    assert (entry.actor, entry.trigger_condition, entry.target) == (ADMINISTRATOR, "tried by a test", row.alias)


def test_the_address_of_a_dialog_opens_the_page_with_its_button(console: None) -> None:
    client = signed_in(OPERATOR)
    dialog = reverse("admin:scraping_scrapejob_start_round")
    assert client.get(dialog)["Location"] == reverse("admin:scraping_scrapejob_changelist")
    assert client.get(dialog, headers={"HX-Request": "true"}).status_code == 200

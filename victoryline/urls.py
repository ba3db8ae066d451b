"""All URL paths."""

from django.contrib import admin
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from monitoring.admin.incident import incident
from scraping.admin.engine import recycle
from victoryline.lib.http import error_pages
from victoryline.lib.http.error_pages import without_slash
from victoryline.lib.http.openapi import docs, schema
from victoryline.lib.http.views import UnknownPathView

handler400 = "victoryline.lib.http.error_pages.bad_request"
handler403 = "victoryline.lib.http.error_pages.forbidden"
handler404 = "victoryline.lib.http.error_pages.not_found"
handler500 = "victoryline.lib.http.error_pages.server_error"

urlpatterns = [
    path("", include("scraping.api.urls")),  # first: most requests go there
    path("admin/recycle", recycle, name="recycle"),
    path("admin/incident/<str:kind>/<str:name>/", admin.site.admin_view(incident), name="incident"),
    path("admin/", admin.site.urls),
    path("problems", error_pages.problem_page, name="problems"),
    path("problems/<str:code>", error_pages.problem_page, name="problem"),
    path("api", RedirectView.as_view(pattern_name="docs")),
    path("api/schema", schema, name="schema"),
    path("api/docs", docs, name="docs"),
    path("", include("apiauth.api.urls")),
    path("", include("monitoring.urls")),
    re_path(r"^(?P<address>(?:api|cricket-data|token|health|status|metrics|problems)(?:/.*)?)/$", without_slash),
    re_path(r"^(?:api/|cricket-data|token)", UnknownPathView.as_view()),
]

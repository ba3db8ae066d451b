"""Every address we answer to."""

from django.contrib import admin
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from scraping.admin.engine import recycle
from victoryline.lib import problem_pages
from victoryline.lib.error_pages import without_slash
from victoryline.lib.schema_view import docs, schema
from victoryline.lib.unknown import UnknownAddressView

handler400 = "victoryline.lib.error_pages.bad_request"
handler403 = "victoryline.lib.error_pages.forbidden"
handler404 = "victoryline.lib.error_pages.not_found"
handler500 = "victoryline.lib.error_pages.server_error"

urlpatterns = [
    path("", include("scraping.api.urls")),  # first, for it is asked most
    path("admin/recycle", recycle, name="recycle"),
    path("admin/", admin.site.urls),
    path("problems", problem_pages.index, name="problems"),
    path("problems/<str:word>", problem_pages.page, name="problem"),
    path("api", RedirectView.as_view(pattern_name="docs")),
    path("api/schema", schema, name="schema"),
    path("api/docs", docs, name="docs"),
    path("", include("apiauth.api.urls")),
    path("", include("scraping.api.submission_urls")),
    path("", include("monitoring.api.urls")),
    re_path(r"^(?P<address>(?:api|cricket-data|token|health|status|metrics|problems)(?:/.*)?)/$", without_slash),
    re_path(r"^(?:api/|cricket-data|token)", UnknownAddressView.as_view()),
]

"""Every address we answer to."""

from django.contrib import admin
from django.urls import include, path, re_path
from django.views.generic import RedirectView
from drf_spectacular.views import SpectacularSwaggerView

from scraping.admin.recycling import recycle
from victoryline.lib.error_pages import without_slash
from victoryline.lib.schema_view import schema

handler400 = "victoryline.lib.error_pages.bad_request"
handler403 = "victoryline.lib.error_pages.forbidden"
handler404 = "victoryline.lib.error_pages.not_found"
handler500 = "victoryline.lib.error_pages.server_error"

urlpatterns = [
    path("admin/recycle", recycle, name="recycle"),
    path("admin/", admin.site.urls),
    path("api", RedirectView.as_view(pattern_name="docs")),
    path("api/schema", schema, name="schema"),
    path("api/docs", SpectacularSwaggerView.as_view(url_name="schema"), name="docs"),
    path("token/", include("apiauth.api.urls")),
    path("", include("scraping.api.urls")),
    path("", include("monitoring.api.urls")),
    re_path(r"^(?P<address>(?:api|cricket-data|token|health|status|metrics)(?:/.*)?)/$", without_slash),
]

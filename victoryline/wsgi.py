"""The web process: API, admin, status page, health."""

from victoryline import web_stop_signals

web_stop_signals.install()  # before the seconds that loading takes

# ruff: noqa: E402 - the order is the point
import os
from importlib import import_module

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from victoryline.lib import availability
from victoryline.lib.http.body_limits import BodyLimit

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "victoryline.settings")

application = BodyLimit(get_wsgi_application())
import_module(settings.ROOT_URLCONF)  # takes a second, for which the first request would wait

from monitoring import log_rows  # needs the app registry
from monitoring.health.publisher import publisher
from scraping.documents.cache import documents

log_rows.install()
publisher.enable()  # prebuilt health documents
documents.update()  # cached matches, for which the first read would wait
availability.database.watch()  # an unreachable database costs no request a timeout

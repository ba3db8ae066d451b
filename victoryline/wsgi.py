"""The web process: API, admin, status page, health."""

from victoryline.lib import stop_signals

stop_signals.mind()  # before the seconds that loading takes

# ruff: noqa: E402 - the order is the point
import os
from importlib import import_module

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from monitoring.warm import keeper
from victoryline.lib import presence
from victoryline.lib.body_gate import Gate

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "victoryline.settings")

application = Gate(get_wsgi_application())
import_module(settings.ROOT_URLCONF)  # a second's work, which the first request would wait for

from apiauth import principals  # their tables exist only now
from scraping.documents.follower import follower

keeper.switch_on()  # so that a probe finds its answer ready
follower.start()  # so that no read has to ask the database
principals.start_refreshing()  # nor any caller
presence.database.watch()  # so that no request has to find out by waiting that it is away

"""The web process: API, admin, status page, health."""

import os
from importlib import import_module

from django.conf import settings
from django.core.wsgi import get_wsgi_application

from monitoring.warm import keeper
from victoryline.lib import presence

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "victoryline.settings")

application = get_wsgi_application()
import_module(settings.ROOT_URLCONF)  # a second's work, which the first request would wait for
keeper.switch_on()  # so that a probe finds its answer ready
presence.database.watch()  # so that no request has to find out by waiting that it is away

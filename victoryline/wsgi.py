"""The web process: API, admin, status page, health."""

import os

from django.core.wsgi import get_wsgi_application

from victoryline.lib import presence

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "victoryline.settings")

application = get_wsgi_application()
presence.database.watch()  # so that no request has to find out by waiting that it is away

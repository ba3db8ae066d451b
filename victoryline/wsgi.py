"""The web process: API, admin, status page, health."""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "victoryline.settings")

application = get_wsgi_application()

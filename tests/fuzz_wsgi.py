"""The web as it is, but that wrong keys may be tried without end: ten a minute would be all that is tested."""

from victoryline.wsgi import application

from apiauth.api import guards  # isort: skip  # its settings exist only now

guards.FAILURES_PER_MINUTE = guards.FAILURES_OF_A_KEY_PER_MINUTE = 1_000_000

__all__ = ["application"]

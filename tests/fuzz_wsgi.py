"""The web application without limits on wrong keys and open addresses, which would stop a fuzz test soon."""

from victoryline.wsgi import application

from apiauth import authentication  # isort: skip  # the settings exist only now
from apiauth.api import token_view  # isort: skip
from victoryline.lib.http import open_limits  # isort: skip

authentication.STRANGERS_PER_MINUTE = token_view.TOKENS_PER_MINUTE = 1_000_000
token_view.FAILURES_PER_MINUTE = token_view.FAILURES_OF_A_KEY_PER_MINUTE = 1_000_000
open_limits.OPEN_ADDRESSES.clear()

__all__ = ["application"]

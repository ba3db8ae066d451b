"""What is at none of our addresses, though it looks like one of the API's: a 404 that is counted like any answer.

Guards against a door that nobody watches: whoever tries one address after another uses up what he has, is told where
he stands, and is named in the access log.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from rest_framework.exceptions import AuthenticationFailed, NotFound
from rest_framework.request import Request

from victoryline.lib.error_pages import DETAILS
from victoryline.lib.problems import StoreAway
from victoryline.lib.views import ApiView


class UnknownAddressView(ApiView):
    needs_database = False
    permission_classes = ()
    schema = None

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        """Whatever the method. Whose token it is decides only who pays for it: a bad one finds nothing here either."""
        with suppress(AuthenticationFailed, StoreAway):
            super().initial(request, *args, **kwargs)
        raise NotFound(DETAILS[404])

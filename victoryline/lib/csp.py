"""The content security policy, with the little more that some places need (CSP_BY_PREFIX) instead of none for them."""

from __future__ import annotations

from csp.middleware import CSPMiddleware, PolicyParts
from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase


class PolicyByPlaceMiddleware(CSPMiddleware):
    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        parts = super().get_policy_parts(request, response, report_only)
        for prefix, directives in settings.CSP_BY_PREFIX.items():
            if parts.replace is None and request.path_info.startswith(prefix):
                parts.replace = directives
        return parts

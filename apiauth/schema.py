"""How the API's description (OpenAPI) names our way of authentication."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension


class BearerScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]  # its __init_subclass__
    target_class = "apiauth.drf.BearerAuthentication"
    name = "bearer"

    def get_security_requirement(self, auto_schema: Any) -> dict[str, list[str]]:
        """With the scope that the key must have."""
        scope = getattr(auto_schema.view, "required_scope", "read")
        return {self.name: [scope] if scope else []}

    def get_security_definition(self, auto_schema: Any) -> dict[str, str]:
        return {
            "type": "http",
            "scheme": "bearer",
            "bearerFormat": "JWT",
            "description": "A token from POST /token/generate-token, good for 24 hours. The words beside it are the "
            "scopes that its key must have: read, ingest or operate; where there is none, any key will do.",
        }

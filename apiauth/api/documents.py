"""The token endpoint's bodies, as its description shows them."""

from __future__ import annotations

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field
from rest_framework import serializers

from victoryline.lib.strict import StrictSerializer


class TokenRequest(StrictSerializer):
    api_key = serializers.CharField(required=False, max_length=200, help_text="Or send it as the header X-API-Key.")


class TokenAnswer(BaseModel):
    model_config = ConfigDict(extra="forbid")

    token: str = Field(description="A JWT. Send it as `Authorization: Bearer <token>`.")
    token_type: str = "Bearer"  # noqa: S105  the name of the scheme
    expires_in: int = Field(ge=0, description="Seconds.")
    expires_at: AwareDatetime

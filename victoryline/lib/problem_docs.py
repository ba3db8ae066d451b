"""How the API's description (OpenAPI) shows the problems an endpoint may answer."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiResponse
from pydantic import BaseModel, ConfigDict, Field

from victoryline.lib.problems import KINDS, MEDIA_TYPE


class Problem(BaseModel):
    """RFC 9457. Further members depend on the type: `retry_after`, `parameter`, `invalid`."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(
        description="Names the kind of problem; docs/api.md explains each.", examples=["/problems/not-found"]
    )
    title: str
    status: int
    detail: str = Field(description="What happened this time, and what to do next.")
    instance: str = Field(description="The address that was asked.")
    request_id: str = Field(description="Tell us this when you ask for help.")


def problem_responses(*codes: int) -> dict[tuple[int, str], OpenApiResponse]:
    return {(code, MEDIA_TYPE): OpenApiResponse(Problem, description=KINDS[code][1]) for code in codes}

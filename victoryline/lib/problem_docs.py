"""How the API's description (OpenAPI) shows the problems an endpoint may answer."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiResponse
from pydantic import BaseModel, ConfigDict, Field

from victoryline.lib.problem_kinds import KINDS, of_status
from victoryline.lib.problems import MEDIA_TYPE


class Problem(BaseModel):
    """RFC 9457. Further members depend on the type: `retry_after`, `parameter`, `invalid`, `limit`, `tier`."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(
        description="Names the kind of problem; the page at this address explains it.",
        examples=["/problems/not-found"],
    )
    title: str
    status: int
    code: str = Field(description="The kind in one word, for programs.", examples=["not-found"])
    detail: str = Field(description="What happened this time.")
    what_to_do: str = Field(description="What helps with problems of this kind.")
    instance: str = Field(description="The address that was asked.")
    request_id: str = Field(description="Tell us this when you ask for help.")


def problem_responses(*codes: int) -> dict[tuple[int, str], OpenApiResponse]:
    return {(code, MEDIA_TYPE): OpenApiResponse(Problem, description=KINDS[of_status(code)].title) for code in codes}

"""Models of JSON from outside the stadium: control requests and recordings."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, ValidationError


class StrictModel(BaseModel):
    """Refuses unknown fields and values of another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, populate_by_name=True)


def first_error(error: ValidationError) -> str:
    """`innings.0.overs.3.deliveries.1.runs: Field required`, and how many more there are."""
    errors = error.errors(include_url=False)
    first: Any = errors[0]
    place = ".".join(str(step) for step in first["loc"])
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    return f"{place}: {first['msg']}{more}" if place else f"{first['msg']}{more}"

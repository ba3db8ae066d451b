"""Why a job was not started. Nothing was written."""

# ruff: noqa: N818 - named by what they say

from __future__ import annotations

from collections.abc import Sequence


class Refused(Exception):
    """What was asked for cannot be done; `field` says which part of it, each of `reasons` what is wrong with it."""

    def __init__(self, field: str, *reasons: str) -> None:
        super().__init__("; ".join(reasons))
        self.field = field
        self.reasons: Sequence[str] = reasons


class KeyReused(Exception):
    """The idempotency key has been used for something else."""

    def __init__(self, job_id: int) -> None:
        super().__init__(
            f"This idempotency key was used before, for job {job_id}, which asks for something else. "
            "Nothing was started: send the same request again, or this one with a new key."
        )
        self.job_id = job_id

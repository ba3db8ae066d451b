"""A client for VictoryLine's API: tokens, conditional requests, patience and the delta loop in one class.

    from victoryline_client import Client

    with Client("https://scores.example.com", api_key) as client:
        for change in client.follow("crex_13KM"):
            print(change.document["score"], change.freshness.age_now())

Needs nothing but Python 3.11. docs/client.md is its manual.
"""

from victoryline_client.answers import Answer, Document, Freshness
from victoryline_client.client import Client
from victoryline_client.errors import (
    BadRequest,
    ClientError,
    Conflict,
    Forbidden,
    Gone,
    NotFound,
    Problem,
    RateLimited,
    ServerFault,
    TooStale,
    Unauthorized,
    Unavailable,
    Unreachable,
)
from victoryline_client.following import Change
from victoryline_client.patience import Patience
from victoryline_client.version import __version__

__all__ = [
    "Answer",
    "BadRequest",
    "Change",
    "Client",
    "ClientError",
    "Conflict",
    "Document",
    "Forbidden",
    "Freshness",
    "Gone",
    "NotFound",
    "Patience",
    "Problem",
    "RateLimited",
    "ServerFault",
    "TooStale",
    "Unauthorized",
    "Unavailable",
    "Unreachable",
    "__version__",
]

"""Client of the VictoryLine API; docs/client.md is its manual. Needs Python 3.11 and httpx."""

from victoryline_client.client import Client
from victoryline_client.follower import Change
from victoryline_client.responses import ApiResponse, Freshness, Problem

__all__ = ["ApiResponse", "Change", "Client", "Freshness", "Problem"]

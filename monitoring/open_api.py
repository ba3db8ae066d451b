"""Adds the open pages for probes and monitoring to the OpenAPI document: /health, /status, /metrics.

They are no views of the REST framework, which would describe them. Listed in SPECTACULAR_SETTINGS after the hook that
completes the operations of the API: these have neither a token nor a consumer's rate limit.
"""

from pathlib import Path
from typing import Any

import yaml

OPEN_PAGES = Path(__file__).with_name("open_pages.yaml")


def add_open_pages(result: dict[str, Any], generator: Any, request: Any, public: bool) -> dict[str, Any]:
    result["paths"] |= yaml.safe_load(OPEN_PAGES.read_text(encoding="utf-8"))
    return result

"""A source's row as reading needs it, so that whoever reads need not ask the database again."""

from __future__ import annotations

from scraping.models import Source
from scraping.readings import Site


def site_of(source: Source) -> Site:
    return Site(
        key=source.key,
        base_url=source.base_url,
        adapter_key=source.adapter_key,
        api_hosts=tuple(source.api_hosts),
        allows_private=source.allows_private_addresses,
        read_way=source.read_way,
        robots_policy=source.robots_policy,
        uses_proxy=source.uses_proxy,
        token_url=source.token_url,
        selectors={name: tuple(found) for name, found in source.selectors.items()},
    )

"""The switch for shapes: the command line option, the control endpoint, and what it changes."""

from __future__ import annotations

import argparse
from typing import Any

import pytest

from stadium.config import StadiumConfig, add_options, config_from
from stadium.shapes import SHAPES

from .conftest import Visitor, visiting

LIVE = "/crex/api/v3/getLiveMatches"


def config(*arguments: str) -> StadiumConfig:
    parser = argparse.ArgumentParser()
    add_options(parser)
    return config_from(parser.parse_args(arguments))


class TestOption:
    def test_may_be_given_for_several_sites(self) -> None:
        found = config("--shape", "crex:women,no_short_names", "--shape", "espn:neutral", "--shape", "crex:revised")
        assert dict(found.shapes) == {"crex": ("women", "no_short_names", "revised"), "espn": ("neutral",)}

    @pytest.mark.parametrize("text", ["crex:shootout", "crex:odd", "nosite:women"])
    def test_refuses_a_shape_that_the_site_cannot_have(self, text: str) -> None:
        with pytest.raises(ValueError, match="can have the shapes"):
            config("--shape", text)


class TestControl:
    @visiting(programme="single")
    async def test_changes_the_matches_of_a_site_until_reset(self, visitor: Visitor) -> None:
        await visitor.enter("crex")
        (before,) = (await visitor.get(LIVE)).values()
        body = {"site": "crex", "shapes": ["walkover"]}
        assert await visitor.post("/control/shapes", body) == body
        visitor.wall.now += 60
        assert "won by walkover" in next(iter((await visitor.get(LIVE)).values()))["res"]
        shown = await visitor.get("/control/shapes")
        assert shown["active"] == {"crex": ["walkover"]}
        assert set(shown["shapes"]) == set(SHAPES)
        await visitor.post("/control/reset", {})
        visitor.wall.now -= 60
        assert next(iter((await visitor.get(LIVE)).values())) == before

    @pytest.mark.parametrize("body", [{}, {"site": "crex"}, {"site": "crex", "shapes": ["shootout"]}])
    @visiting(programme="single")
    async def test_refuses_invalid_shapes(self, visitor: Visitor, body: dict[str, Any]) -> None:
        assert (await visitor.post("/control/shapes", body, 400))["error"]

"""Reported changes of the OpenAPI document: each kind of change, and whether it breaks clients."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest

from scripts.schema import difference
from scripts.schema_changes import changes

BEFORE: dict[str, Any] = {
    "openapi": "3.1.0",
    "paths": {
        "/things": {
            "get": {
                "operationId": "list_things",
                "security": [{"bearer": ["read"]}],
                "parameters": [
                    {"in": "query", "name": "limit", "schema": {"type": "integer", "maximum": 100}},
                    {"in": "query", "name": "kind", "schema": {"type": "string", "enum": ["a", "b"]}},
                    {"in": "query", "name": "show", "schema": {"type": "string", "pattern": "^(x|y)(,(x|y))*$"}},
                ],
                "responses": {
                    "200": {
                        "headers": {"ETag": {"schema": {"type": "string"}}},
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Thing"}}},
                    }
                },
            },
            "post": {
                "operationId": "make_thing",
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Wish"}}}},
                "responses": {"200": {}},
            },
        }
    },
    "components": {
        "schemas": {
            "Thing": {
                "type": "object",
                "required": ["id", "state"],
                "properties": {
                    "id": {"type": "integer"},
                    "state": {"type": "string", "enum": ["new"]},
                    "parts": {"type": "array", "items": {"$ref": "#/components/schemas/Thing"}},
                },
            },
            "Wish": {"type": "object", "properties": {"name": {"type": "string"}}},
        }
    },
}


def get(document: dict[str, Any]) -> dict[str, Any]:
    return document["paths"]["/things"]["get"]


def thing(document: dict[str, Any]) -> dict[str, Any]:
    return document["components"]["schemas"]["Thing"]


def wish(document: dict[str, Any]) -> dict[str, Any]:
    return document["components"]["schemas"]["Wish"]


Move = Callable[[dict[str, Any]], object]
BREAKING: dict[str, Move] = {
    "the operation is gone": lambda new: new["paths"]["/things"].pop("get"),
    "operationId was list_things": lambda new: get(new).update(operationId="all_things"),
    "security was": lambda new: get(new).update(security=[{"bearer": ["operate"]}]),
    "the parameter is gone": lambda new: get(new)["parameters"].pop(),
    "a new required parameter": lambda new: get(new)["parameters"].append(
        {"in": "query", "name": "day", "required": True, "schema": {"type": "string"}}
    ),
    "is required now": lambda new: get(new)["parameters"][0].update(required=True),
    "maximum was 100, is 50": lambda new: get(new)["parameters"][0]["schema"].update(maximum=50),
    "no longer among its values: b": lambda new: get(new)["parameters"][1]["schema"].update(enum=["a"]),
    "no longer among its values: y": lambda new: get(new)["parameters"][2]["schema"].update(pattern="^(x)(,(x))*$"),
    "pattern was": lambda new: get(new)["parameters"][2]["schema"].update(pattern="^(x|y)$"),
    "the header ETag is gone": lambda new: get(new)["responses"]["200"].update(headers={}),
    "this response is gone": lambda new: get(new).update(responses={}),
    "application/json is gone": lambda new: get(new)["responses"]["200"].update(content={}),
    "the field is gone": lambda new: thing(new)["properties"].pop("id"),
    "is not always present any more": lambda new: thing(new).update(required=["id"]),
    "type was integer, is string": lambda new: thing(new)["properties"]["id"].update(type="string"),
    "a new required field": lambda new: wish(new).update(
        required=["size"], properties={"name": {"type": "string"}, "size": {"type": "integer"}}
    ),
    "no body is taken any more": lambda new: new["paths"]["/things"]["post"].pop("requestBody"),
}
HARMLESS: dict[str, Move] = {
    "a new operation": lambda new: new["paths"].update({"/more": {"get": {"operationId": "more", "responses": {}}}}),
    "a new parameter": lambda new: get(new)["parameters"].append(
        {"in": "query", "name": "day", "schema": {"type": "string"}}
    ),
    "security was": lambda new: get(new).update(security=[{"bearer": []}]),
    "maximum was 100, is 200": lambda new: get(new)["parameters"][0]["schema"].update(maximum=200),
    "new among its values: c": lambda new: get(new)["parameters"][1]["schema"].update(enum=["a", "b", "c"]),
    "new among its values: z": lambda new: get(new)["parameters"][2]["schema"].update(pattern="^(x|y|z)(,(x|y|z))*$"),
    "a new response": lambda new: get(new)["responses"].update({"304": {}}),
    "a new header Link": lambda new: get(new)["responses"]["200"]["headers"].update(Link={}),
    "a new field": lambda new: thing(new)["properties"].update(name={"type": "string"}),
    "its text, examples or headers": lambda new: get(new).update(summary="All of them"),
}


def changed(move: Move) -> dict[str, Any]:
    new = copy.deepcopy(BEFORE)
    move(new)
    return new


class TestChanges:
    def test_are_empty_for_equal_schemas(self) -> None:
        assert changes(BEFORE, copy.deepcopy(BEFORE)) == []
        assert difference(BEFORE, copy.deepcopy(BEFORE)) == ""

    @pytest.mark.parametrize("text", BREAKING)
    def test_that_break_clients_are_reported_as_breaking(self, text: str) -> None:
        found = changes(BEFORE, changed(BREAKING[text]))
        assert text in found[0].text
        assert found[0].is_breaking
        assert f"{sum(each.is_breaking for each in found)} of them break" in difference(BEFORE, changed(BREAKING[text]))
        assert "new VERSION" in difference(BEFORE, changed(BREAKING[text]))

    @pytest.mark.parametrize("text", HARMLESS)
    def test_that_only_add_are_reported_as_harmless(self, text: str) -> None:
        found = changes(BEFORE, changed(HARMLESS[text]))
        assert [text in each.text for each in found] == [True]
        assert not found[0].is_breaking
        summary = difference(BEFORE, changed(HARMLESS[text]))
        assert "make schema" in summary
        assert "new VERSION" not in summary

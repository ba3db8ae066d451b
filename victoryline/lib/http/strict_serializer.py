"""A serializer that refuses unknown fields and values of another JSON type.

Django REST framework would drop a misspelled field and read 0 as false, and the client would not notice.
"""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.extensions import OpenApiSerializerExtension
from rest_framework import serializers

# Spaces at the ends don't count, NUL can't be stored. (`\S` would take it; and JavaScript's `\s`, by which many read
# the description, lacks some that Python strips.)
NOT_BLANK = r"^[^\x00]*[^\s\x00\x1c-\x1f\x85][^\x00]*$"
# JSON types as error messages name them: of fields, and of values.
WANTED: tuple[tuple[type[serializers.Field[Any, Any, Any, Any]], str], ...] = (
    (serializers.BooleanField, "true or false"),
    (serializers.IntegerField, "a whole number"),
    (serializers.CharField, "text"),
    (serializers.ChoiceField, "text"),
)
GIVEN: dict[type, str] = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "text",
    list: "a list",
    dict: "an object",
}


class StrictSerializer(serializers.Serializer[None]):
    # For JSON bodies. No docstring: the description would show it for each that has none of its own.
    # `ways`: what the description says about which fields go together (JSON Schema).
    ways: ClassVar[dict[str, Any]] = {}

    def to_internal_value(self, data: Any) -> Any:
        wrong = {}
        for name, value in data.items() if isinstance(data, dict) else ():
            if name not in self.fields:
                wrong[str(name)[:100]] = [f"There is no such field here. There are: {', '.join(self.fields)}."]
            elif reason := _complaint(self.fields[name], value):
                wrong[name] = [reason]
        if wrong:
            raise serializers.ValidationError(wrong)
        return super().to_internal_value(data)


def _complaint(field: Any, value: Any) -> str:
    """Returns an error message, empty if the type is right or the field itself reports the error (null, no list)."""
    parts: Any = ()
    if isinstance(field, serializers.ListField) and isinstance(value, list):
        parts = value
    elif isinstance(field, serializers.DictField) and isinstance(value, dict):
        parts = value.values()
    if reason := next((found for each in parts if (found := _complaint(field.child, each))), ""):
        return reason
    wanted = next((name for kind, name in WANTED if isinstance(field, kind)), "")
    is_whole = isinstance(value, float) and value.is_integer()
    given = "a whole number" if is_whole else GIVEN.get(type(value), wanted)
    return f"Send {wanted} here, not {given}." if wanted and given != wanted else ""


class StrictSchema(OpenApiSerializerExtension):  # type: ignore[no-untyped-call]  # its __init_subclass__
    """Describes the same rules in the OpenAPI schema."""

    target_class = StrictSerializer
    match_subclasses = True

    def map_serializer(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        described: dict[str, Any] = auto_schema._map_serializer(  # noqa: SLF001  as its own documentation has it
            self.target, direction, bypass_extensions=True
        )
        for name, field in self.target.fields.items():
            if isinstance(field, serializers.CharField) and field.trim_whitespace and not field.allow_blank:
                described["properties"][name].setdefault("pattern", NOT_BLANK)
        ways: dict[str, Any] = self.target.ways
        return {**described, "additionalProperties": False, **ways}

"""A serializer that refuses unknown fields and values of another JSON type.

Django REST framework would drop a misspelled field and read 0 as false, and the client would not notice.
"""

from __future__ import annotations

from typing import Any, ClassVar

from drf_spectacular.extensions import OpenApiSerializerExtension
from rest_framework import serializers

NOT_HERE = "There is no such field here. There are: {fields}."
OF_ANOTHER_TYPE = "Send {wanted} here, not {given}."
# Spaces at the ends don't count, NUL can't be stored. (`\S` would take it; and JavaScript's `\s`, by which many read
# the description, lacks some that Python strips.)
NOT_BLANK = r"^[^\x00]*[^\s\x00\x1c-\x1f\x85][^\x00]*$"
# The JSON type of a field, as error messages name it.
KINDS: tuple[tuple[type[serializers.Field[Any, Any, Any, Any]], str], ...] = (
    (serializers.BooleanField, "true or false"),
    (serializers.IntegerField, "a whole number"),
    (serializers.CharField, "text"),
    (serializers.ChoiceField, "text"),
)


class StrictSerializer(serializers.Serializer[None]):
    # For JSON bodies. No docstring: the description would show it for each that has none of its own.
    # `ways`: what the description says about which fields go together (JSON Schema).
    ways: ClassVar[dict[str, Any]] = {}

    def to_internal_value(self, data: Any) -> Any:
        if isinstance(data, dict):
            wrong = self._unknown(data) | self._of_another_type(data)
            if wrong:
                raise serializers.ValidationError(wrong)
        return super().to_internal_value(data)

    def _unknown(self, data: dict[str, Any]) -> dict[str, list[str]]:
        said = NOT_HERE.format(fields=", ".join(self.fields))
        return {str(name)[:100]: [said] for name in data if name not in self.fields}

    def _of_another_type(self, data: dict[str, Any]) -> dict[str, list[str]]:
        found = {name: _complaint(self.fields[name], value) for name, value in data.items() if name in self.fields}
        return {name: [said] for name, said in found.items() if said}


def _complaint(field: Any, value: Any) -> str:
    """Returns an error message, empty if the type is right or the field itself reports the error (null, no list)."""
    if isinstance(field, serializers.ListField) and isinstance(value, list):
        return next((said for each in value if (said := _complaint(field.child, each))), "")
    if isinstance(field, serializers.DictField) and isinstance(value, dict):
        return next((said for each in value.values() if (said := _complaint(field.child, each))), "")
    wanted = next((name for kind, name in KINDS if isinstance(field, kind)), "")
    given = _kind_of(value)
    return OF_ANOTHER_TYPE.format(wanted=wanted, given=given) if wanted and given not in (wanted, "null") else ""


def _kind_of(value: Any) -> str:
    match value:
        case bool():
            return "true or false"
        case int():
            return "a whole number"
        case float():
            return "a whole number" if value.is_integer() else "a number"
        case str():
            return "text"
        case list():
            return "a list"
        case None:
            return "null"
    return "an object"


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

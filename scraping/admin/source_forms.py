"""What operators may say about how a source is read, checked before it reaches a worker."""

from __future__ import annotations

from typing import Any

from django import forms
from django.core.exceptions import ValidationError

from scraping.models import Source
from scraping.sources import ADAPTERS, reading_problem


class SourceForm(forms.ModelForm[Source]):
    class Meta:
        model = Source
        fields = ("read_way", "selectors")  # the fieldsets of the admin add the others

    def clean(self) -> dict[str, Any] | None:
        """A selector that does not parse, or a way of reading that the adapter does not know, is refused by name."""
        cleaned = super().clean() or {}
        adapter = ADAPTERS.get(self.instance.adapter_key)
        if adapter is not None and not self.errors:
            selectors = cleaned.get("selectors", self.instance.selectors) or {}
            read_way = cleaned.get("read_way", self.instance.read_way)
            if problem := reading_problem(adapter, read_way, selectors):
                field = "selectors" if problem.startswith("selectors") else "read_way"
                self.add_error(field, ValidationError(problem.removeprefix("selectors: ")))
        return cleaned

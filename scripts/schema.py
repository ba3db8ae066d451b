"""`make schema`: writes docs/openapi.json, the schema of the API, and lists the changes since the last time."""

import json
import os
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("DJANGO_SETTINGS_MODULE", "victoryline.settings")

from scripts.schema_changes import changes  # noqa: E402 - needs the path above

DOCUMENT = ROOT / "docs" / "openapi.json"


def described() -> dict[str, Any]:
    """Returns the schema that /api/schema serves. Needs Django set up."""
    from victoryline.lib.http.openapi import document

    found: dict[str, Any] = json.loads(document().text)
    return found


def text(description: dict[str, Any]) -> str:
    """Returns sorted JSON with one line per value, for readable diffs."""
    return json.dumps(description, indent=1, sort_keys=True, ensure_ascii=False) + "\n"


def written() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(DOCUMENT.read_text(encoding="utf-8")) if DOCUMENT.exists() else {}
    return found


def difference(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Returns a summary of the changes; empty if there are none."""
    found = changes(old, new)
    if not found:
        return ""
    breaking = sum(each.is_breaking for each in found)
    head = f"The API schema has changed ({len(found)} changes, {breaking} of them break clients):"
    todo = "If intended: write docs/openapi.json with `make schema`, commit it with the change, add it to CHANGELOG.md."
    if breaking:
        todo += " Breaking changes need a new VERSION in SPECTACULAR_SETTINGS and a message to every consumer."
    return "\n".join([head, *(f"  {each}" for each in found), todo])


def main() -> None:
    import django

    django.setup()
    old, new = written(), described()
    DOCUMENT.write_text(text(new), encoding="utf-8")
    sys.stdout.write(
        f"wrote {DOCUMENT.relative_to(ROOT)}: {len(new['paths'])} paths, version {new['info']['version']}\n"
    )
    if old and (moved := difference(old, new)):
        sys.stdout.write(f"{moved}\n")


if __name__ == "__main__":
    main()

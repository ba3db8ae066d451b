"""Tasks on the command line: list, retry, discard and cancel them, by id or by filters."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from scraping import jobs, journal
from scraping.errors import ErrorClass
from scraping.journal import RetryOutcome, TaskSelection
from scraping.models import TaskState
from victoryline.lib.operators import name_of, rehearsal

VERBS = {
    "list": ("List", "Show tasks."),
    "retry": ("Retried", "Retry failed and dead tasks, except where their work was done since."),
    "discard": ("Discarded", "End failed and dead tasks that are not needed any more."),
    "cancel": ("Cancelled", "End tasks that no worker has taken yet."),
}
LISTED = 100
LISTED_REFUSALS = 20


def add_selection(parser: ArgumentParser) -> None:
    parser.add_argument("--job", type=int)
    parser.add_argument("--source", default="", help="The key of a source.")
    parser.add_argument("--error-class", choices=[one.value for one in ErrorClass])
    parser.add_argument("--fingerprint", default="", help="The fingerprint of an error group.")
    parser.add_argument("--json", action="store_true", help="One JSON object instead of lines.")


class Command(BaseCommand):
    help = "List, retry, discard and cancel tasks. Examples: task list --source crex; task discard 7 8 --reason old"

    def add_arguments(self, parser: ArgumentParser) -> None:
        verbs = parser.add_subparsers(dest="verb", required=True)
        for verb, (_, words) in VERBS.items():
            one = verbs.add_parser(verb, help=words)
            one.add_argument("ids", nargs="*", type=int, metavar="ID", help="Tasks; without any, all that match.")
            add_selection(one)
            if verb == "list":
                one.add_argument("--state", choices=TaskState.values, default=TaskState.DEAD)
                continue
            one.add_argument("--reason", required=verb != "retry", default="", help="Stored in the audit.")
            one.add_argument("--by", default="", help="The operator's name for the audit. Default: the login name.")
            one.add_argument("--dry-run", action="store_true", help="Only print what would be done.")

    def handle(self, *args: Any, verb: str, ids: list[int], **options: Any) -> None:
        error_class = ErrorClass(options["error_class"]) if options["error_class"] else None
        which = TaskSelection(
            job_id=options["job"],
            source_key=options["source"],
            error_class=error_class,
            fingerprint=options["fingerprint"],
        )
        if verb == "list":
            self._list(which, ids, options["state"], is_json=options["json"])
            return
        call = {"actor": name_of(options["by"]), "reason": options["reason"], "now": timezone.now()}
        try:
            with rehearsal(is_dry_run=options["dry_run"]):
                outcome = self._change(verb, ids, which, call)
        except jobs.Refused as refusal:
            raise CommandError(f"Nothing was changed: {refusal}") from refusal
        self._show(verb, outcome, is_json=options["json"], is_dry_run=options["dry_run"])

    def _change(self, verb: str, ids: list[int], which: TaskSelection, call: dict[str, Any]) -> RetryOutcome:
        if verb == "retry":
            return journal.retry(task_ids=ids, **call) if ids else jobs.retry_failed(which, **call)
        if not ids and not which:
            raise CommandError("Nothing was changed: name tasks, or give a filter.")
        change, states = (
            (journal.discard, journal.RETRIABLE) if verb == "discard" else (journal.cancel, (TaskState.PENDING,))
        )
        found = journal.selected(which, states).values_list("pk", flat=True)[: journal.AT_ONCE + 1]
        chosen = ids or list(found[: journal.AT_ONCE])
        outcome = change(task_ids=chosen, **call)
        return RetryOutcome(outcome.retried, outcome.refused, has_more=not ids and len(found) > journal.AT_ONCE)

    def _list(self, which: TaskSelection, ids: list[int], state: str, *, is_json: bool) -> None:
        rows = journal.selected(which, (TaskState(state),)).order_by("-pk")
        names = ("pk", "resource", "ref__match__title", "attempt", "error_class", "reason")
        found = list((rows.filter(pk__in=ids) if ids else rows).values(*names)[:LISTED])
        lines = (f"{row['pk']} {row['resource']} {row['ref__match__title'] or '-'}: {row['reason']}" for row in found)
        self.stdout.write(json.dumps({"tasks": found}) if is_json else "\n".join(lines) or f"No task is {state}.")

    def _show(self, verb: str, outcome: RetryOutcome, *, is_json: bool, is_dry_run: bool) -> None:
        if is_json:
            document = {"dry_run": is_dry_run, "changed": outcome.retried, "refused": outcome.refused}
            self.stdout.write(json.dumps(document | {"has_more": outcome.has_more}))
            return
        done, number = f"Would {verb}" if is_dry_run else VERBS[verb][0], len(outcome.retried)
        self.stdout.write(f"{done} {number} {'task' if number == 1 else 'tasks'}.")
        if outcome.refused:
            self.stdout.write(f"Refused: {len(outcome.refused)}.")
            for task_id, reason in list(outcome.refused.items())[:LISTED_REFUSALS]:
                self.stdout.write(f"  task {task_id}: {reason}")
        if outcome.has_more:
            self.stdout.write("There are more: run it again.")

"""Following a match in the terminal, for `python -m victoryline_client` and for whoever has the same wish."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice
from typing import Any, TextIO

from victoryline_client import words
from victoryline_client.answers import Answer
from victoryline_client.client import Client
from victoryline_client.errors import ClientError, NotFound, Problem, Unauthorized, clean
from victoryline_client.screens import JsonScreen, LiveScreen, PlainScreen, Screen

URL, KEY = "VICTORYLINE_URL", "VICTORYLINE_API_KEY"
LISTED = 200
NEAR = 3


class CannotFollow(Exception):  # noqa: N818 - reads as what it says
    """The message says why, and what to do."""


@dataclass(frozen=True, kw_only=True)
class Wishes:
    """What was asked for on the command line."""

    match: str = ""
    is_json: bool = False
    is_plain: bool = False
    past: int = 5
    final_wait: float = 60.0

    @classmethod
    def of(cls, options: dict[str, object]) -> Wishes:
        return cls(
            match=str(options.get("match") or "").strip(),
            is_json=bool(options.get("json")),
            is_plain=bool(options.get("plain")),
            past=max(0, int(str(options.get("past")))),
            final_wait=max(0.0, float(str(options.get("final_wait")))),
        )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("match", nargs="?", default="", help="Its number or key, such as crex_13KM; none: list them.")
    parser.add_argument("--url", default="", help="The server's address (or VICTORYLINE_URL).")
    key = "Your API key. Better in VICTORYLINE_API_KEY: others on the machine see command lines."
    parser.add_argument("--key", default="", help=key)
    parser.add_argument("--json", action="store_true", help="One JSON object a line, for programs.")
    parser.add_argument("--plain", action="store_true", help="Plain lines, also on a terminal.")
    parser.add_argument("--past", type=int, default=5, metavar="N", help="Past events to show first (%(default)s).")
    parser.add_argument(
        "--final-wait",
        type=float,
        default=60.0,
        metavar="SECONDS",
        help="After the end, wait this long and look once more for corrections (%(default)s).",
    )


def server_of(options: Mapping[str, Any], *, url: str = "") -> tuple[str, str]:
    """The server's address and the key: as given, or from the environment, or (the address) this one."""
    return options["url"] or os.environ.get(URL, "") or url, options["key"] or os.environ.get(KEY, "")


def run(client: Client, wishes: Wishes, out: TextIO) -> None:
    """Until the match is over or somebody presses Ctrl-C. Raises CannotFollow."""
    try:
        if wishes.match:
            _follow(client, wishes, out)
        else:
            _list(client, out)
    except KeyboardInterrupt:
        return
    except BrokenPipeError:
        _let_go(out)  # whoever read our lines has had enough
    except NotFound as error:
        raise CannotFollow(_unknown(client, wishes.match, error)) from error
    except Unauthorized as error:
        raise CannotFollow(f"The server does not accept the API key: {clean(error.detail)}") from error
    except ClientError as error:
        raise CannotFollow(_words(error)) from error


def _follow(client: Client, wishes: Wishes, out: TextIO) -> None:
    # The first answer is asked for before anything is shown: an unknown match or a wrong key is an error at once, where
    # in the loop the server may be away for as long as it likes.
    client.match(wishes.match)
    with _screen(wishes, out) as screen:
        for change in client.follow(wishes.match, every_look=True, final_wait=wishes.final_wait):
            if not wishes.is_json or change.has_news or change.is_whole or change.trouble is not None:
                screen.show(change)


def _screen(wishes: Wishes, out: TextIO) -> Screen:
    if wishes.is_json:
        return JsonScreen(out)
    if wishes.is_plain or not out.isatty():
        return PlainScreen(out, past=wishes.past)
    return LiveScreen(out, past=wishes.past, is_coloured="NO_COLOR" not in os.environ)


def _list(client: Client, out: TextIO) -> None:
    live = list(islice(client.matches(status="live", limit=100), LISTED))
    if live:
        lines = ["Live now; follow one by the name on the left:", "", *map(words.list_words, live)]
    else:
        coming = list(islice(client.matches(status="upcoming", limit=20), 20))
        lines = ["No match is live now.", *(["Coming:", ""] if coming else []), *map(words.list_words, coming)]
    out.write("\n".join(lines) + "\n")
    out.flush()


def _unknown(client: Client, name: str, error: NotFound) -> str:
    """With what it may have meant, and what there is."""
    lines = [clean(error.detail) or f"No match is known as {clean(name)}."]
    with suppress(ClientError):
        found = list(islice(client.matches(limit=100), LISTED))
        near = nearest(name, found)
        live = [each for each in found if each.data.get("status") == "live" and each not in near]
        lines += ["", "Near it:", *map(words.list_words, near)] if near else []
        lines += ["", "Live now:", *map(words.list_words, live[:20])] if live else []
    return "\n".join(lines)


def nearest(name: str, found: list[Answer]) -> list[Answer]:
    """By key or by title: written alike, or a part of it."""
    names: dict[str, Answer] = {}
    for each in found:
        for text in (*(each.data.get("keys") or ()), each.data.get("title") or ""):
            names.setdefault(str(text).lower(), each)
    wanted = name.lower()
    parts = [text for text in names if len(wanted) >= 3 and wanted in text]
    alike = [*parts, *get_close_matches(wanted, names, n=NEAR, cutoff=0.6)]
    chosen = {id(names[text]): names[text] for text in alike}
    return list(chosen.values())[:NEAR]


def _words(error: ClientError) -> str:
    if isinstance(error, Problem):
        asked = f" (request {error.request_id})" if error.request_id else ""
        return f"{clean(error.title)}. {clean(error.detail)}{asked}"
    return f"{clean(error).rstrip('.')}. Check --url, and whether the server runs."


def _let_go(out: TextIO) -> None:
    """Python flushes its output once more when it ends, and would complain about the closed pipe then."""
    with suppress(OSError, ValueError, AttributeError):
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, out.fileno())
        os.close(devnull)

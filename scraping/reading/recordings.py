"""Anonymised recordings of responses, for tests: names, ids, addresses and texts are replaced, everything else stays.

The adapters must read a recording as they read the original. Every word that is not in vocabulary.txt becomes another
word of the same length, every id another id in the same order, consistently over all documents; they are drawn, not
computed, so that nothing leads back to the original.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any

import orjson
from parsel import Selector

from scraping.reading.saved import Saved, Trial, Trials
from scraping.readings import Document, Site
from scraping.sources import parsing
from scraping.sources.base import Adapter
from scraping.sources.crex.site import page_state

VOCABULARY = frozenset(Path(__file__).with_name("vocabulary.txt").read_text(encoding="utf-8").split())
_PIECE = re.compile(r"(?P<origin>https?://[\w.:@%-]+)|[^\W_]+", re.IGNORECASE)  # an address up to its path, or a word
_TOKEN = re.compile(r"[^\W_]+")
_LETTERS = re.compile(r"[^\W\d_]+")
_ID_FIELD = re.compile(r"(?:^|[a-z_])(?:[iI]d|uid|[fF]?key|mf)$")
_CODE = re.compile(r"[0-9A-Za-z]{2,40}", re.ASCII)
_ROW_KEY = re.compile(r"[0-9A-Z]{2,8}", re.ASCII)  # of an object that has matches by their keys
_PERSONAL = re.compile(r"birth|height|weight|market|salary|latitude|longitude", re.IGNORECASE)
_TIMES = ((946_684_800, 4_102_444_800), (946_684_800_000, 4_102_444_800_000), (1900, 2100))  # s, ms, years
_SMALL = 1000  # smaller numbers are ids only where a field says so
_DATA = {"app-root-state": page_state, "__NEXT_DATA__": parsing.next_data}  # scripts with data, by id
_KEPT = frozenset({"class", "id", "type", "datetime", "lang", "rel"})  # attributes
_DROPPED = frozenset({"style", "link", "meta", "noscript", "svg", "iframe", "img"})
_CONSONANTS, _VOWELS, _DIGITS = "bdfgklmnprstvz", "aeiou", "0123456789"


INDEX = "recording.json"


class RecordingError(Exception):
    """The recording is not read as its original; nothing was kept."""


@dataclass(frozen=True)
class Recording:
    """The documents of one reading, by file, and what can be read of them: names of documents by file and kind."""

    source: str
    match_id: str
    base_url: str
    captured_at: datetime
    documents: Mapping[str, Document]
    kinds: Mapping[str, Mapping[str, str]]

    @classmethod
    def load(cls, folder: Path) -> Recording:
        index = orjson.loads((folder / INDEX).read_bytes())
        documents = {
            file: Document("", one["url"], one["status"], one["content_type"], (folder / file).read_bytes())
            for file, one in index.pop("documents").items()
        }
        at = datetime.fromisoformat(index.pop("captured_at"))
        return cls(**index, documents=documents, captured_at=at)

    def write(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        index = {name: getattr(self, name) for name in ("source", "match_id", "base_url", "captured_at", "kinds")}
        index["documents"] = {
            file: {"url": one.url, "status": one.status, "content_type": one.content_type}
            for file, one in self.documents.items()
        }
        for file, one in self.documents.items():
            (folder / file).write_bytes(one.body)
        (folder / INDEX).write_bytes(orjson.dumps(index, option=orjson.OPT_INDENT_2))

    def read(self, adapter: Adapter, kind: str) -> Trial:
        """Returns what the adapter reads of this kind."""
        files = [Saved(file, self.documents[file], name) for file, name in self.kinds[kind].items()]
        site = Site(self.source, self.base_url)
        at, number = self.captured_at, self.match_id
        return Trials(adapter, site, files, at=at, day=at.date(), kind=kind, match_id=number).best()[0]


def save(folder: Path, trials: Sequence[Trial], adapter: Adapter, base_url: str, *, seed: int) -> Recording:
    """Writes what was read as an anonymised recording; raises RecordingError where it is not read in the same way."""
    files: dict[str, tuple[str, Document]] = {}  # by label
    for trial in trials:
        for name, label in trial.labels.items():
            one = trial.reading.documents[name]
            end = "html" if one.body.lstrip()[:1] == b"<" else "json"
            files.setdefault(label, (f"{name.replace(':', '-')}.{end}", one))
    first = trials[0].reading
    names = Anonymiser(dict(files.values()), first.ref.source_event_id, base_url, seed=seed)
    Recording(
        source=adapter.key,
        match_id=names.text(first.ref.source_event_id),
        base_url=names.text(base_url),
        captured_at=first.captured_at,
        documents=names.documents(),
        kinds={one.kind: {files[label][0]: name for name, label in one.labels.items()} for one in trials},
    ).write(folder)
    recording = Recording.load(folder)
    for trial in trials:
        again = recording.read(adapter, trial.kind)
        before, after = (_lines(names.shape(_plain(one))) for one in (trial, again))
        if before != after:
            for file in (*recording.documents, INDEX):
                (folder / file).unlink()
            pairs = zip(before, after, strict=False)
            difference = next((f"{new} instead of {old}" for old, new in pairs if old != new), "parts are missing")
            raise RecordingError(f"{trial.kind}: {again.error or difference}")
    return recording


def _plain(trial: Trial) -> Any:
    """Returns a result as plain values; of unknown values only their paths."""
    listed = trial.result if isinstance(trial.result, list | tuple) else [trial.result]
    found = [one.model_dump(mode="json", exclude={"unknown"}) for one in listed if one is not None]
    return {trial.kind: found, "unknown": [one.path for one in trial.unknown]}


def _lines(value: Any) -> list[str]:
    return [line.strip() for line in orjson.dumps(value, option=orjson.OPT_INDENT_2).decode().splitlines()]


@dataclass
class Content:
    """A document's JSON, or its page with the JSON of its scripts."""

    data: Any = None
    page: Any = None
    scripts: list[tuple[Any, Any]] = field(default_factory=list)

    @classmethod
    def of(cls, document: Document) -> Content:
        text = document.text()
        try:
            return cls(orjson.loads(text))
        except orjson.JSONDecodeError:
            page = Selector(text=text or "<html></html>", type="html").root
        found = cls(page=page)
        for node in list(page.iter()):
            name = node.get("id", "") if isinstance(node.tag, str) else ""
            if node.tag == "pre" or (node.tag == "script" and name in _DATA):
                data = _DATA[name](text) if name in _DATA else _json(node.text_content())
                if data is not None:
                    found.scripts.append((node, data))
            elif not isinstance(node.tag, str) or node.tag == "script" or node.tag in _DROPPED:
                node.drop_tree()
        return found


def _json(text: str) -> Any:
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


class Anonymiser:
    """The replacements of one recording."""

    def __init__(self, documents: Mapping[str, Document], match_id: str, base_url: str, *, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - a recording is made again with the same words
        self._documents = documents
        self._contents = {name: Content.of(one) for name, one in documents.items()}
        self._words: dict[str, str] = {}
        self._numbers: dict[int, int] = {}
        self._codes: dict[str, str] = {}
        self._origins: dict[str, str] = {}
        self._seen = {piece.lower() for one in documents.values() for piece in _TOKEN.findall(one.text())}
        self.text(base_url)  # its host is the first one
        self._learn(match_id, "id")
        for content in self._contents.values():
            self._learn(content.data)
            for _, data in content.scripts:
                self._learn(data)
        self._draw_ids()

    def documents(self) -> dict[str, Document]:
        found = self._documents.items()
        return {
            name: replace(one, url=self.text(one.url), body=self._body(self._contents[name])) for name, one in found
        }

    def text(self, text: str) -> str:
        return _PIECE.sub(self._piece, text)

    def shape(self, value: Any, name: str = "") -> Any:
        """Returns a parsed value without what is replaced: that of a recording equals that of its original."""
        if isinstance(value, dict):
            return {key: self.shape(one, key) for key, one in value.items()}
        if isinstance(value, list):
            return [self.shape(one, name) for one in value]
        if isinstance(value, str):
            is_id = bool(_ID_FIELD.search(name))
            return _PIECE.sub(lambda found: self._masked(found, is_id=is_id), value)
        return None if _ID_FIELD.search(name) else value

    def _masked(self, found: re.Match[str], *, is_id: bool) -> str:
        piece, numbers = found[0], {*map(str, self._numbers), *map(str, self._numbers.values())}
        is_replaced = piece in self._codes or piece in self._codes.values() or (len(piece) > 3 and piece in numbers)
        is_kept = not is_id if piece.isdigit() else _is_known(piece)
        return piece if is_kept and not is_replaced and not found["origin"] else "x"

    def _learn(self, value: Any, name: str = "") -> None:
        """Finds the ids. What is an id in one place is replaced in all of them."""
        if isinstance(value, dict):
            for key, one in value.items():
                if isinstance(one, dict) and _ROW_KEY.fullmatch(key):
                    self._learn(key, "key")
                self._learn(one, key)
        elif isinstance(value, list):
            for one in value:
                self._learn(one, name)
        elif _ID_FIELD.search(name) and isinstance(value, str | int) and not isinstance(value, bool):
            if parsing.is_number(str(value)):
                is_id = int(value) >= _SMALL or name.lower().endswith("id")
                if is_id and int(value) and not any(first <= int(value) < last for first, last in _TIMES):
                    self._numbers[int(value)] = 0
            elif isinstance(value, str) and _CODE.fullmatch(value):
                self._codes[value] = ""

    def _draw_ids(self) -> None:
        """Draws the new ids. Numbers keep their order, by which adapters sort."""
        last = 1_000_000
        for number in sorted(self._numbers):
            last = self._numbers[number] = last + self._random.randint(3, 60)
        for code in self._codes:
            self._codes[code] = self._drawn(code, {*self._codes, *self._codes.values()}, digits=_DIGITS[1:])

    def _value(self, value: Any, name: str = "") -> Any:
        if isinstance(value, dict):
            return {self._name(key): self._value(one, key) for key, one in value.items()}
        if isinstance(value, list):
            return [self._value(one, name) for one in value]
        if isinstance(value, bool) or not isinstance(value, str | int | float):
            return value
        if isinstance(value, str) and not parsing.is_number(value):
            return self.text(value)
        if _PERSONAL.search(name):
            return type(value)(0)
        number = int(value) if isinstance(value, str | int) else 0
        is_id = number in self._numbers and (number >= _SMALL or _ID_FIELD.search(name))
        return type(value)(self._numbers[number]) if is_id else value

    def _name(self, name: str) -> str:
        """Returns the name of a field. Only ids and hosts in it are replaced, as in "match-13KM" and in addresses."""
        return _PIECE.sub(lambda found: self._piece(found) if found["origin"] else self._id(found[0]) or found[0], name)

    def _id(self, piece: str) -> str:
        if parsing.is_number(piece):
            return str(self._numbers.get(int(piece), "")) if int(piece) >= _SMALL else ""
        return self._codes.get(piece, "")

    def _piece(self, found: re.Match[str]) -> str:
        piece = found[0]
        if found["origin"]:
            return self._origins.setdefault(piece.lower(), f"https://host{len(self._origins) + 1}.example")
        if replaced := self._id(piece):
            return replaced
        if piece.isdigit() or _is_known(piece):
            return piece
        word = piece.lower()
        if word not in self._words:
            self._words[word] = self._drawn(word, set(self._words.values()))
        return "".join(
            new.upper() if old.isupper() else new for old, new in zip(piece, self._words[word], strict=False)
        )

    def _drawn(self, word: str, taken: set[str], digits: str = "") -> str:
        """Returns a free word of the same length and case; a longer one where all of them are taken."""
        for attempt in range(10_000):
            drawn = "".join(map(self._letter, range(len(word)), word, [digits] * len(word)))
            if drawn not in taken and drawn.lower() not in VOCABULARY and drawn.lower() not in self._seen:
                break
            word += "a" * (attempt % 200 == 199)
        return drawn

    def _letter(self, place: int, old: str, digits: str) -> str:
        if old.isdigit():
            return self._random.choice(digits) if digits else old
        new = self._random.choice(_VOWELS if place % 2 else _CONSONANTS)
        return new.upper() if old.isupper() else new

    def _body(self, content: Content) -> bytes:
        if content.page is None:
            return orjson.dumps(self._value(content.data), option=orjson.OPT_INDENT_2)
        written = [node for node, _ in content.scripts]
        for node in content.page.iter():
            for name, value in node.attrib.items():
                if name.startswith("on") or name == "style":
                    del node.attrib[name]
                elif name not in _KEPT:
                    node.set(name, self.text(value))
            node.text = self.text(node.text) if node.text and node not in written else node.text
            node.tail = self.text(node.tail) if node.tail else node.tail
        for node, data in content.scripts:
            for child in list(node):
                node.remove(child)
            node.text = orjson.dumps(self._value(data)).decode().replace("<", "\\u003c")
        return f"<!doctype html>\n{Selector(root=content.page, type='html').get()}\n".encode()


def _is_known(piece: str) -> bool:
    """Returns whether a word stays: single letters, words of the vocabulary, and those with digits, such as 4lb."""
    word = piece.lower()
    return word in VOCABULARY or all(len(part) == 1 or part in VOCABULARY for part in _LETTERS.findall(word))

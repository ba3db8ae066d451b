"""The heads of HTTP messages, as far as a proxy needs them: read within limits, passed on without its own lines."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass

MAX_HEAD_BYTES = 64 * 1024
END = b"\r\n\r\n"
# Between one machine and the next only: not passed on.
HOP_BY_HOP = frozenset(
    {"connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te", "upgrade"}
)


class BadHeadError(Exception):
    """Not HTTP, or more of it than anybody needs."""


@dataclass(frozen=True)
class Head:
    start: tuple[str, str, str]  # the three words of the first line
    fields: tuple[tuple[str, str], ...]

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.fields if key.lower() == name]

    def get(self, name: str) -> str:
        return next(iter(self.all(name)), "")

    @property
    def length(self) -> int | None:
        """How long the body says it is; None where it does not say. BadHeadError where it says two things."""
        sizes = set(self.all("content-length"))
        if not sizes:
            return None
        size = sizes.pop()
        if sizes or not (size.isascii() and size.isdigit()):
            raise BadHeadError("its length is not a number, or two")
        return int(size[:18])

    @property
    def is_chunked(self) -> bool:
        return bool(self.all("transfer-encoding"))

    def passed_on(self, start: tuple[str, str, str], added: Mapping[str, str]) -> bytes:
        """The same head with another first line; the connection closes after this one message."""
        named = {word.strip().lower() for value in self.all("connection") for word in value.split(",")}
        left_out = HOP_BY_HOP | named | {key.lower() for key in added}
        kept = [(key, value) for key, value in self.fields if key.lower() not in left_out]
        return written(start, {}, *kept, *added.items(), ("Connection", "close"))


def written(start: tuple[str, str, str], fields: Mapping[str, str], *more: tuple[str, str]) -> bytes:
    lines = [f"{key}: {value}" for key, value in (*fields.items(), *more)]
    return "\r\n".join([" ".join(start), *lines, "", ""]).encode("latin-1", errors="replace")


async def read_head(reader: asyncio.StreamReader) -> Head:
    """The next head. asyncio.IncompleteReadError where there is none any more."""
    try:
        raw = await reader.readuntil(END)
    except asyncio.LimitOverrunError as error:
        raise BadHeadError(f"its head has more than {MAX_HEAD_BYTES} bytes") from error
    first, *lines = raw[: -len(END)].decode("latin-1").split("\r\n")
    words = first.split(" ", 2)
    fields = [line.partition(":") for line in lines]
    if len(words) < 2 or any(not colon or key != key.strip() or "\n" in value for key, colon, value in fields):
        raise BadHeadError("this is not HTTP")
    third = words[2] if len(words) > 2 else ""
    return Head((words[0], words[1], third), tuple((key, value.strip()) for key, _, value in fields))

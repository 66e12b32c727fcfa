"""When a tool-call id must change, and what it becomes.

Ids and where they stand go in, ids come out. Pure: the same traffic gives the same ids. Ids are
opaque here: no rule splits one to learn what it means, save the native style, which counts on.
"""

import hashlib
import re
from base64 import b32encode
from collections import OrderedDict
from collections.abc import Iterable
from enum import StrEnum

MAX_LENGTH = 40
"""Longest id that every consumer takes (Chat Completions; Responses allows 64)."""

_UNSAFE = re.compile(r"[^A-Za-z0-9_-]")
_SUFFIX_LENGTH = 11
_MADE = re.compile(r"(?P<readable>.*)_t[a-z2-7]{10}", re.DOTALL)

# The K2 family by the names in use: kimi-k2.7-code, kimi-k2-0905, moonshotai/Kimi-K2-Instruct.
_K2 = re.compile(r"(?<![a-z0-9])k2(?![0-9])", re.IGNORECASE)

# K2's own shape: `functions.Bash:3`, on Moonshot's wire `Bash:3`. The number counts all calls.
_NATIVE = re.compile(r"(?P<head>.+):(?P<number>[0-9]{1,15})", re.DOTALL)


class Mode(StrEnum):
    """`moontap_rewrite`: which ids change."""

    OFF = "off"
    DUPLICATES = "duplicates"
    ALL = "all"


class Style(StrEnum):
    """`moontap_id_style`: what a changed id looks like."""

    AUTO = "auto"
    OPAQUE = "opaque"
    NATIVE = "native"


def style_for(style: Style, model: str | None) -> Style:
    """Resolve `auto`: native for the K2 family, whose ids are text of the prompt; else opaque."""
    if style is not Style.AUTO:
        return style
    return Style.NATIVE if _K2.search(model or "") else Style.OPAQUE


def opaque(upstream_id: str, *place: str | int) -> str:
    """An id that only this call has: readable at the front, derived from its place at the end.

    place: whatever tells this call from every other, in order. At most `MAX_LENGTH` characters of
    `[A-Za-z0-9_-]`; ends in a letter-led suffix, so it never looks like `name_<digits>`. Given an
    id that it made for the same place, it gives that id back: a saved reply served through the
    tap once more, or a second tap, changes nothing.
    """
    made = _MADE.fullmatch(upstream_id)
    if made and _suffixed(made["readable"], place) == upstream_id:
        return upstream_id
    return _suffixed(safe(upstream_id), place)


def safe(upstream_id: str) -> str:
    """How an upstream id stands at the front of an opaque one."""
    return _UNSAFE.sub("_", upstream_id)[: MAX_LENGTH - _SUFFIX_LENGTH - 1]


def readable(id_: str) -> str | None:
    """The front of an id that looks as if `opaque` had made it; None for any other."""
    made = _MADE.fullmatch(id_)
    return made["readable"] if made else None


def _suffixed(readable: str, place: tuple[str | int, ...]) -> str:
    text = "\0".join([*map(str, place), readable])
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
    return f"{readable}_t{b32encode(digest).decode().lower()[: _SUFFIX_LENGTH - 1]}"


class Namer:
    """Gives each call of one response, or of one history, the id that the client will see.

    taken: the ids already used in the conversation; the ids it hands out are taken from then on.
    """

    def __init__(self, mode: Mode, style: Style, taken: Iterable[str]) -> None:
        self._mode = mode
        self._style = style
        self._taken = set(taken)
        self._highest: int | None = None

    def name(self, upstream_id: str, *place: str | int) -> str:
        """The id for a call whose upstream id this is; place as in `opaque`."""
        wanted = upstream_id
        if self._mode is Mode.ALL or (self._mode is Mode.DUPLICATES and wanted in self._taken):
            wanted = self._new(upstream_id, place)
        self._taken.update((upstream_id, wanted))
        if self._highest is not None:
            self._highest = max(self._highest, _number(wanted), _number(upstream_id))
        return wanted

    def _new(self, upstream_id: str, place: tuple[str | int, ...]) -> str:
        native = _NATIVE.fullmatch(upstream_id) if self._style is Style.NATIVE else None
        if native:
            if upstream_id not in self._taken:
                return upstream_id  # its own number is free: K2 counts right, keep its word
            if self._highest is None:
                self._highest = max(map(_number, self._taken), default=-1)
            self._highest += 1
            return f"{native['head']}:{self._highest}"
        new = opaque(upstream_id, *place)
        attempt = 0
        while new in self._taken:  # a server that gives two responses one message id
            attempt += 1
            new = opaque(upstream_id, *place, attempt)
        return new


class IdMemory:
    """The upstream ids that earlier responses of a session and agent have used.

    Bounded: `limit` ids in all; the sessions that were quiet the longest are forgotten first.
    """

    def __init__(self, limit: int = 100_000) -> None:
        self._limit = limit
        self._count = 0
        self._used: OrderedDict[str, set[str]] = OrderedDict()

    def used(self, key: str) -> set[str]:
        """The ids of a session and agent so far."""
        return self._used.get(key, set())

    def add(self, key: str, ids: Iterable[str]) -> None:
        """Remember ids; a session without any takes no room."""
        ids = set(ids)
        if not ids:
            return
        known = self._used.setdefault(key, set())
        self._used.move_to_end(key)
        before = len(known)
        known.update(ids)
        self._count += len(known) - before
        while self._count > self._limit:
            if len(self._used) == 1:
                # One session alone is past the limit: start it afresh, as after a restart.
                known.clear()
                self._count = 0
                return
            _, forgotten = self._used.popitem(last=False)
            self._count -= len(forgotten)


def _number(id_: str) -> int:
    found = _NATIVE.fullmatch(id_)
    return int(found["number"]) if found else -1

"""What a request asks for, as a key: requests that ask for the same have the same key.

Request bodies in, keys out. Pure; a history that was read before is not read again, so that a turn
of a long conversation costs a comparison of bytes and the reading of what is new.
"""

import re
from codecs import BOM_UTF8
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from itertools import islice
from typing import Self
from urllib.parse import parse_qsl

import msgspec

from moontap import canonical
from moontap.jsonpaths import JsonPath
from moontap.pairing import Pairing
from moontap.replay import normal
from moontap.replay.texts import Texts
from moontap.rules import Rules
from moontap.wire import jsontext, protocol, spans
from moontap.wire.beginnings import Beginning, Beginnings
from moontap.wire.types import Message, Protocol

_MEMBERS = msgspec.json.Decoder(dict[str, msgspec.Raw])
_LIST = msgspec.json.Decoder(list[msgspec.Raw])

_COUNT = re.compile(r"(?:^|/)v1/messages/count_tokens/*$")
_KEYED = frozenset(("model", "stream", "tools", "system", "messages"))

# Reading on behind a known beginning, as `wire.history` does.
_MARK = b'"moontap: what was read before"'
_HEAD = b'{"messages":[' + _MARK
_SMALL = 4 * 1024
_UNSTABLE = 4  # messages at the end that clients still change: cache marks move, reminders go
_REREAD = 12  # further messages before a longer beginning is kept
_KEPT = 48 * 1024 * 1024
_MOST_KNOWN = 100_000  # messages and members, some 300 bytes each
_MOST_LAST = 64  # kinds of members
_NO_LINK = bytes(16)
_NO_CALL = (-1, 0)


@dataclass(frozen=True, slots=True)
class Key:
    """What a request asks for.

    whole: the key itself. kind: the protocol, or the method and path of a request that is not
    paired. context: of what does not count and yet tells requests with the same key apart (system
    prompt, limits). chain: one digest a message that counts, each over all messages up to it.
    turn: which reply of its conversation it asks for, from 1; 0 where it is not paired.
    """

    whole: bytes
    kind: str
    context: bytes = b""
    model: str | None = None
    stream: bool = False
    tools: bytes = b""
    chain: tuple[bytes, ...] = ()
    turn: int = 0


@dataclass(frozen=True, slots=True)
class _Piece:
    """A message that was read.

    digest: of its normal form without tool results; results: one digest each. shape: what pairing
    needs; None without any part that counts.
    """

    system: bool
    digest: bytes
    results: tuple[bytes, ...]
    shape: Message | None


@dataclass(frozen=True, slots=True)
class Exact:
    """What a request says, to the letter: to tell requests with one key apart.

    messages: one digest each, of those that count. aside: of tools and system prompt.
    """

    messages: Counter[bytes]
    aside: bytes = b""

    def unlike(self, other: Self) -> int:
        """How many messages the other has that are not here."""
        return (other.messages - self.messages).total()


@dataclass(slots=True)
class _State:
    """How far a history was read.

    prompt: digest of the leading system messages. before: the link before the present run of
    messages that hold one tool result each. run: that run's results.
    """

    chain: list[bytes] = field(default_factory=list)
    turn: int = 1
    leading: bool = True
    prompt: bytes = b""
    before: bytes = b""
    run: tuple[bytes, ...] = ()
    pairing: Pairing = field(default_factory=Pairing)

    def copy(self) -> Self:
        return replace(self, chain=self.chain.copy(), pairing=self.pairing.copy())


@dataclass(frozen=True, slots=True, eq=False)
class _Known:
    members: dict[str, msgspec.Raw]
    count: int
    state: _State


class Keys:
    """Makes the keys of one library's requests, in any order. Bounded in memory.

    changing: whether dates, times and ids become placeholders.
    """

    def __init__(self, rules: Rules, *, changing: bool = True) -> None:
        self.texts = Texts(rules.replay, changing=changing)
        self.system = rules.replay.system
        self.ignore = rules.replay.ignore
        self._pieces: dict[Protocol, dict[bytes, _Piece]] = {kind: {} for kind in Protocol}
        self._values: dict[tuple[str, bytes], bytes] = {}
        self._last: dict[str, tuple[bytes, bytes]] = {}
        self._beginnings: Beginnings[_Known] = Beginnings(_KEPT)

    def key(self, method: str, path: str, body: bytes) -> Key:
        """The key of a request; body: content encoding undone. Never raises: what cannot be read
        is its own bytes."""
        kind = paired(method, path)
        try:
            body = without(body, self.ignore)
            if kind is not None:
                return self._paired(
                    kind, "count_tokens" if _COUNT.search(_bare(path)) else "", body
                )
            return self._other(method, path, _text(normal.other(body, self.texts)))
        except (ValueError, RecursionError):
            return self._other(method, path, body)

    def exact(self, method: str, path: str, body: bytes) -> Exact:
        """What tells it from others with its key. Never raises."""
        kind = paired(method, path)
        try:
            split = _split(without(body, self.ignore)) if kind else None
            if kind is not None and split is not None:
                return self._exact(kind, *split)
        except (ValueError, RecursionError):
            pass
        return Exact(Counter((self.key(method, path, body).whole,)))

    def _exact(
        self, kind: Protocol, members: dict[str, msgspec.Raw], raws: list[msgspec.Raw]
    ) -> Exact:
        aside = [self._value(name, members.get(name)) for name in ("tools", "system")]
        said: Counter[bytes] = Counter()
        pairing, leading = Pairing(), True
        for raw in raws:
            piece = self._piece(kind, bytes(raw))
            if uncounted(kind, piece.system, leading, self.system):
                aside.append(piece.digest)
                continue
            leading = False
            if piece.shape is not None:
                results = sorted(self._results(pairing, piece))
                said[_digest(piece.digest, *results)] += 1
        return Exact(said, _digest(*aside))

    def _other(self, method: str, path: str, body: bytes) -> Key:
        bare, _, query = path.partition("?")
        asked = sorted((name, self.texts(value)) for name, value in parse_qsl(query, True))
        return Key(_digest(_text([method, bare, asked]), body), f"{method} {bare}")

    def _paired(self, kind: Protocol, aside: str, body: bytes) -> Key:
        members, state = self._read(kind, body)
        model, stream = (_scalar(members.get(name)) for name in ("model", "stream"))
        tools = self._value("tools", members.get("tools"))
        system = _digest(state.prompt, self._value("system", members.get("system")))
        rest = sorted(members.keys() - _KEYED)
        others = [
            part for name in rest for part in (name.encode(), self._value(name, members[name]))
        ]
        head = _text([kind, aside, model, stream is True])
        last = state.chain[-1] if state.chain else _NO_LINK
        return Key(
            whole=_digest(head, tools, system if self.system else b"", last),
            kind=f"{kind} {aside}".strip(),
            context=_digest(system, *others),
            model=model if isinstance(model, str) else None,
            stream=stream is True,
            tools=tools,
            chain=tuple(state.chain),
            turn=state.turn,
        )

    def _read(self, kind: Protocol, body: bytes) -> tuple[dict[str, msgspec.Raw], _State]:
        known = self._beginnings.find(body, kind) if len(body) >= _SMALL else None
        text = body if known is None else _HEAD + body[len(known.text) :]
        split = _split(text)
        if known and (not split or not split[1] or bytes(split[1][0]) != _MARK):
            known, text = None, body  # a second `messages` behind: that one counts
            split = _split(text)
        if split is None:
            raise ValueError("no JSON object with a list of messages")
        members, raws = split
        state, before = _State(), 0
        if known:
            members = {**known.note.members, **members}
            raws, state, before = raws[1:], known.note.state.copy(), known.note.count
        keep = self._keep_at(body, known, before + len(raws)) - before
        for number, raw in enumerate(raws):
            if number == keep:
                self._keep(kind, body, text, number + before, state, known)
            self._add(kind, state, bytes(raw))
        return members, state

    def _keep_at(self, body: bytes, known: Beginning[_Known] | None, count: int) -> int:
        """Before which message of a body its beginning shall be kept; -1: not at all."""
        if len(body) < _SMALL or count <= _UNSTABLE:
            return -1
        new = count - _UNSTABLE - (known.note.count if known else 0)
        return -1 if known and new < _REREAD else count - _UNSTABLE

    def _keep(
        self,
        kind: Protocol,
        body: bytes,
        text: bytes,
        count: int,
        state: _State,
        known: Beginning[_Known] | None,
    ) -> None:
        last = count - 1 if known is None else count - known.note.count
        raws = _split(text)
        try:
            assert raws is not None
            end = next(spans.known_elements(text, "messages", raws[1], {last}))[2]
            start = 0 if known is None else len(known.text) - len(_HEAD)
            if known is None:
                first = spans.member_start(text, "messages")
                members = jsontext.decode(_MEMBERS, body[:first] + b"[]}")
            else:
                members = known.note.members
        except (ValueError, StopIteration):
            return
        if members is None:
            return
        members = {name: raw.copy() for name, raw in members.items() if name != "messages"}
        note = _Known(members, count, state.copy())
        self._beginnings.keep(Beginning(body[: start + end], kind, note), instead_of=known)

    def _add(self, kind: Protocol, state: _State, raw: bytes) -> None:
        piece = self._piece(kind, raw)
        if uncounted(kind, piece.system, state.leading, self.system):
            if state.leading:
                state.prompt = _digest(state.prompt, piece.digest)
            return
        state.leading = False
        if piece.shape is None:
            return
        last = state.chain[-1] if state.chain else _NO_LINK
        if piece.shape.role != "tool":
            state.before, state.run = last, ()
        elif not state.run:
            state.before = last
        results = self._results(state.pairing, piece)
        # Results come in the order in which parallel tools end, in Claude Code 2.1.328 for one.
        state.run = tuple(sorted((*state.run, *results)))
        state.chain.append(_short(b"".join((state.before, piece.digest, *state.run))))
        state.turn += piece.shape.role == "assistant"

    @staticmethod
    def _results(pairing: Pairing, piece: _Piece) -> list[bytes]:
        """A digest of each of the message's results and the call it answers."""
        assert piece.shape
        before = len(pairing.answers)
        pairing.add([piece.shape])
        if not piece.results:
            return []
        found = islice(reversed(pairing.answers.items()), len(pairing.answers) - before)
        answered = {number: call for call, (_, number) in found}
        return [
            b"%b %d %d;" % (digest, *answered.get(number, _NO_CALL))
            for number, digest in enumerate(piece.results)
        ]

    def _piece(self, kind: Protocol, raw: bytes) -> _Piece:
        known, name = self._pieces[kind], _short(raw)
        piece = known.get(name)
        if piece is None:
            if len(known) >= _MOST_KNOWN:
                known.clear()
            piece = known[name] = _read_piece(normal.message(kind, raw, self.texts))
        return piece

    def _value(self, name: str, raw: msgspec.Raw | None) -> bytes:
        """The digest of a member's normal form; of a missing list the same as of an empty one."""
        text = b"" if raw is None else bytes(raw)
        last = self._last.get(name)
        if last and last[0] == text:  # tools of 40 KB are the same from turn to turn
            return last[1]
        known = (name, _short(text))
        digest = self._values.get(known)
        if digest is None:
            if len(self._values) >= _MOST_KNOWN:
                self._values.clear()
            read = {"tools": normal.tools, "system": normal.system}.get(name, normal.other)
            digest = self._values[known] = _short(_text(read(text, self.texts)))
        if len(self._last) < _MOST_LAST:
            self._last[name] = (text, digest)
        return digest


def paired(method: str, path: str) -> Protocol | None:
    """The protocol of a request whose messages are read: one that is paired, or counts tokens."""
    wire = protocol.of_request(method, path)
    if wire is None and method == "POST" and _COUNT.search(_bare(path)):
        wire = protocol.ANTHROPIC
    return wire.protocol if wire else None


def uncounted(kind: Protocol, system: bool, leading: bool, counts: bool) -> bool:
    """Whether a message is left out: one that is part of the system prompt, unless that counts.

    Claude Code 2.1.328 has one behind the first user message, with the working folder, the
    platform and what agents there are; in Chat Completions an agent's own hints can stand there,
    so only the leading ones are left out.
    """
    return system and not counts and (leading or kind is Protocol.ANTHROPIC)


def without(body: bytes, paths: Sequence[JsonPath]) -> bytes:
    """A JSON body without what the paths select, and without a byte order mark. Raises ValueError
    where it is not JSON."""
    body = body.removeprefix(BOM_UTF8)
    if not paths:
        return body
    document = jsontext.loads(body)
    for path in paths:
        # From the end, so that the positions in a list stay true.
        places = sorted({match.parts for match in path.path.finditer(document)}, key=_order)
        for parts in reversed(places):
            container = document
            for part in parts[:-1]:
                container = container[part]
            if parts:
                del container[parts[-1]]
    return jsontext.encode(document).encode("utf-8", "surrogatepass")


def _order(parts: Sequence[str | int]) -> list[tuple[int, str]]:
    return [(part, "") if isinstance(part, int) else (0, part) for part in parts]


def _read_piece(message: normal.Message) -> _Piece:
    role = "system" if message.role in normal.SYSTEM else message.role
    answers = [part for part in message.parts if part.kind == normal.RESULT]
    parts = [[part.kind, part.value] for part in message.parts if part.kind != normal.RESULT]
    digest = _short(_text([role, parts]))
    # Of a run of messages with a result each, none has a place of its own for the rest.
    own, rest = (digest, b"") if role == "tool" else (b"", digest)
    return _Piece(
        role == "system",
        rest,
        tuple(_short(own + _text(part.value)) for part in answers),
        normal.shape(message) if message.parts else None,
    )


def _text(value: object) -> bytes:
    """One spelling of a value, in a tenth of the time that `canonical` takes."""
    try:
        return msgspec.json.encode(value, order="sorted")
    except (OverflowError, ValueError, RecursionError):  # lone surrogates, huge numbers
        return canonical.encode(value)


def _split(text: bytes) -> tuple[dict[str, msgspec.Raw], list[msgspec.Raw]] | None:
    members = jsontext.decode(_MEMBERS, text)
    if members is None or "messages" not in members:
        return None
    raws = jsontext.decode(_LIST, members["messages"])
    return None if raws is None else (members, raws)


def _scalar(raw: msgspec.Raw | None) -> object:
    return None if raw is None else jsontext.loads(bytes(raw))


def _bare(path: str) -> str:
    return path.partition("?")[0]


def _digest(*parts: bytes) -> bytes:
    # With their lengths: the same bytes parted elsewhere are another thing.
    return _short(b"".join(b"%d:%b" % (len(part), part) for part in parts))


def _short(text: bytes) -> bytes:
    return sha256(text).digest()[:16]  # the fastest of hashlib where a processor knows it

"""Transcripts of Claude Code: what was asked, what came back, sub-agents apart.

Lines in, turns out. Newer ones also note each request as it was sent (`api-request`: which earlier
one it goes on from, how many of its messages it keeps, hashes of those behind; `api-request-blob`:
messages that differ from the transcript's own). Then the requests are rebuilt and show what the
client dropped; without them they are what the transcript says. Seen on 2.1.328.
"""

from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple

from moontap.evidence.damage import Damage
from moontap.evidence.growing import Growing, joined, read_message, reply_of
from moontap.evidence.lines import Record, records
from moontap.evidence.place import Place
from moontap.evidence.telling import Answer, Teller, Told
from moontap.findings.types import Part
from moontap.rules import Rules
from moontap.wire import jsontext
from moontap.wire.protocol import ANTHROPIC
from moontap.wire.types import Asked, Message, Request

NOTE = (
    "it does not say what the client sent, so a call that it dropped on the way cannot be seen; "
    "Claude Code 2.1.328 and later note their requests, and so does a capture of moontap"
)
_MOST_KEPT = 16  # requests that a later one may go on from
_MOST_OPEN = 8  # requests whose reply has not come yet
_PARTS = Part.HISTORY | Part.TURNS


@dataclass(slots=True)
class _Said:
    """A message of the transcript. key: what its records have in common. line: of the first of
    them. numbers: the lines of all, by `contents`."""

    role: str
    key: object
    line: int
    numbers: list[int]
    contents: list[Any]
    record: Mapping[str, Any]

    def lines(self) -> tuple[int, ...]:
        """Of each block, where they stand in several records; else the one."""
        if len(self.contents) == 1:
            return (self.line,)
        each = zip(self.numbers, self.contents, strict=True)
        return tuple(n for n, one in each for _ in joined([one])) or (self.line,)

    def message(self) -> dict[str, Any]:
        content = self.contents[0] if len(self.contents) == 1 else joined(self.contents)
        return {"role": self.role, "content": content}


class _Blob(NamedTuple):
    """A message that a hash stands for."""

    message: Message
    lines: tuple[int, ...]
    size: int


@dataclass(slots=True)
class _Sent:
    """A request that is noted. ok: its messages are all known."""

    messages: list[Message]
    lines: list[tuple[int, ...]]
    sizes: int
    line: int
    record: Mapping[str, Any]
    ok: bool = True
    reply: _Said | None = None


@dataclass(slots=True)
class _Chain:
    """One agent's part of a transcript."""

    session: str | None
    agent: str | None
    history: Growing = field(default_factory=lambda: Growing(ANTHROPIC))
    tail: _Said | None = None
    model: str | None = None
    pending: deque[_Said] = field(default_factory=deque)
    sent: OrderedDict[str, _Sent] = field(default_factory=OrderedDict)
    open: OrderedDict[str, _Sent] = field(default_factory=OrderedDict)
    counts: dict[str, int] = field(default_factory=dict)


class Transcript:
    """Iterate `turns` once; after that `notes` says what the transcript could not tell."""

    def __init__(self, text: bytes, rules: Rules, damage: list[Damage]) -> None:
        self.notes: list[str] = []
        self._text, self._damage = text, damage
        self._teller = Teller(ANTHROPIC, rules)
        self._chains: dict[tuple[str | None, str | None], _Chain] = {}
        self._blobs: dict[str, _Blob] = {}
        self._shapes: dict[str, bytes] = {}
        # Without a noted request, requests are what the messages so far come to.
        self._noted = b'"api-request"' in text

    def turns(self) -> Iterator[Told]:
        """The exchanges, in the order in which they ended."""
        for record in records(self._text, self._damage):
            kind = record.value.get("type")
            if kind in ("user", "assistant"):
                yield from self._said(record)
            elif kind == "api-request":
                yield from self._request(record)
            elif kind == "api-request-blob":
                self._blob(record)
            elif kind == "api-request-shape":
                self._shape(record.value)
            elif record.value.get("subtype") == "compact_boundary":
                chain = self._chain(record.value)
                yield from self._flush(chain)
                chain.history, chain.counts = Growing(ANTHROPIC), {}
        for chain in self._chains.values():
            yield from self._flush(chain)
            while chain.open:
                yield from self._close(chain, chain.open.popitem(last=False)[1])
        if not self._noted:
            self.notes.append(NOTE)

    def _chain(self, value: Mapping[str, Any]) -> _Chain:
        session = jsontext.string(value.get("sessionId")) or jsontext.string(
            value.get("session_id")
        )
        agent = jsontext.string(value.get("agentId")) or jsontext.string(
            value.get("parent_tool_use_id")
        )
        if agent is None and value.get("isSidechain") is True:
            agent = "sidechain"
        return self._chains.setdefault((session, agent), _Chain(session, agent))

    def _said(self, record: Record) -> Iterator[Told]:
        """A message, or one block of it: each block of a reply has a record of its own."""
        value = record.value
        message = value.get("message")
        if not isinstance(message, dict) or (value.get("isMeta") is True and self._noted):
            return
        chain = self._chain(value)
        role = str(value["type"])
        key = (message.get("id") or record.number) if role == "assistant" else "user"
        tail = chain.tail
        if tail and tail.role == role and tail.key == key and not self._goes_back(chain, value):
            tail.contents.append(message.get("content"))
            tail.numbers.append(record.number)
        else:
            yield from self._flush(chain)
            if role == "user":
                self._rewind(chain, value)
            chain.tail = _Said(
                role, key, record.number, [record.number], [message.get("content")], value
            )
        if isinstance(uuid := value.get("uuid"), str):
            chain.counts[uuid] = len(chain.history.messages) + 1

    def _goes_back(self, chain: _Chain, value: Mapping[str, Any]) -> bool:
        """Whether a prompt goes on from an earlier message: the person went back to it."""
        message = value.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        if isinstance(content, list) and any(
            isinstance(block, dict) and block.get("type") == "tool_result" for block in content
        ):
            return False  # results of parallel calls go on from their own calls
        parent = value.get("parentUuid")
        at = chain.counts.get(parent) if isinstance(parent, str) else None
        return at is not None and at < len(chain.history.messages) + bool(chain.tail)

    def _rewind(self, chain: _Chain, value: Mapping[str, Any]) -> None:
        if not self._noted and self._goes_back(chain, value):
            chain.history.cut(chain.counts[value["parentUuid"]])

    def _flush(self, chain: _Chain) -> Iterator[Told]:
        """A message is whole: it is a reply, or goes into the history."""
        said, chain.tail = chain.tail, None
        if said is None:
            return
        if self._noted:
            chain.pending.append(said)
            if said.role == "assistant":
                ref = said.record.get("requestRef")
                sent = chain.open.get(ref) if isinstance(ref, str) else None
                if sent is None and chain.open and said.record.get("isApiErrorMessage"):
                    sent = next(reversed(chain.open.values()))
                if sent:
                    sent.reply = said
            return
        if said.role == "assistant":
            message = _reply(said)
            if not said.record.get("isApiErrorMessage"):
                chain.model = jsontext.string(message.get("model")) or chain.model
            lines = tuple(chain.history.lines)
            yield self._tell(
                chain,
                chain.history.request(chain.model),
                said,
                lines,
                said.line,
                chain.history.size,
                None,
                _PARTS,
            )
            if said.record.get("isApiErrorMessage"):
                return
        chain.history.add(said.message(), *said.lines())

    def _blob(self, record: Record) -> None:
        hash_, message = record.value.get("hash"), record.value.get("message")
        if isinstance(hash_, str) and isinstance(message, dict):
            read, size = read_message(ANTHROPIC, message)
            self._blobs[hash_] = _Blob(read, (record.number,), size)

    def _shape(self, value: Mapping[str, Any]) -> None:
        hash_, shape = value.get("shapeHash"), value.get("shape")
        if isinstance(hash_, str) and isinstance(shape, dict) and "tools" in shape:
            self._shapes[hash_] = _raw(shape["tools"])

    def _request(self, record: Record) -> Iterator[Told]:
        value = record.value
        chain = self._chain(value)
        yield from self._flush(chain)
        base = chain.sent.get(value["base"]) if isinstance(value.get("base"), str) else None
        keep = value.get("keep")
        keep = keep if isinstance(keep, int) else 0
        sent = _Sent([], [], 0, record.number, value)
        if keep:
            sent.ok = base is not None and base.ok and len(base.messages) >= keep
            if base:
                sent.messages, sent.lines = base.messages[:keep], base.lines[:keep]
                sent.sizes = base.sizes
        tail = value.get("tail")
        for hash_ in tail if isinstance(tail, list) else ():
            noted = self._blobs.get(hash_) if isinstance(hash_, str) else None
            known = noted or self._from_pending(chain, hash_)
            if known is None:
                sent.ok = False
                continue
            said = self._stands_for(chain, known.message.role)
            sent.messages.append(known.message)
            # One that was changed has other blocks than what was said.
            sent.lines.append((said.line,) if said and noted else known.lines)
            sent.sizes += known.size
        chain.pending.clear()
        while chain.open and (
            len(chain.open) >= _MOST_OPEN or next(iter(chain.open.values())).reply is not None
        ):
            yield from self._close(chain, chain.open.popitem(last=False)[1])
        if not sent.ok:
            what = "the request cannot be rebuilt: what it goes on from is not there"
            self._damage.append(Damage(what, record.number))
        id_ = jsontext.string(value.get("id")) or f"line {record.number}"
        chain.sent[id_] = chain.open[id_] = sent
        while len(chain.sent) > _MOST_KEPT:
            chain.sent.popitem(last=False)

    def _from_pending(self, chain: _Chain, hash_: object) -> _Blob | None:
        """The transcript's own message that a hash stands for: the next one that was said."""
        if not chain.pending or not isinstance(hash_, str):
            return None
        said = chain.pending[0]
        read, size = read_message(ANTHROPIC, said.message())
        known = self._blobs[hash_] = _Blob(read, said.lines(), size)
        return known

    def _stands_for(self, chain: _Chain, role: str) -> _Said | None:
        """What was said that a message of a request stands for, as it was or changed."""
        if chain.pending and chain.pending[0].role == role:
            return chain.pending.popleft()
        return None

    def _close(self, chain: _Chain, sent: _Sent) -> Iterator[Told]:
        if not sent.ok:
            return
        params = sent.record.get("params")
        params = params if isinstance(params, dict) else {}
        tools = self._shapes.get(str(sent.record.get("shapeHash")), b"")
        asked = Asked(
            tools=tools,
            tool_choice=_raw(params.get("tool_choice")),
            thinking=_raw(params.get("thinking")),
            limit=_raw(params.get("max_tokens")),
        )
        model = jsontext.string(params.get("model"))
        request = Request(model, True, None, tuple(sent.messages), asked)
        parts = _PARTS | Part.TOOLS if tools else _PARTS
        yield self._tell(
            chain,
            request,
            sent.reply,
            tuple(sent.lines),
            sent.line,
            sent.sizes,
            _moment(sent.record),
            parts,
        )

    def _tell(
        self,
        chain: _Chain,
        request: Request,
        said: _Said | None,
        lines: tuple[tuple[int, ...], ...],
        line: int,
        size: int,
        at: float | None,
        parts: Part,
    ) -> Told:
        answer = None
        if said:
            answer = _answer(said)
            parts |= Part.ANSWER if answer.status >= 400 else Part.REPLY
        turn = self._teller.exchange(
            request,
            answer,
            parts,
            session=chain.session,
            agent=chain.agent,
            size=size,
            label=f"line {said.line if said else line}",
            at=at,
        )
        reply, blocks = (said.line, said.lines()) if said else (None, ())
        return Told(turn, Place(lambda: lines, reply, blocks, line))


def _reply(said: _Said) -> dict[str, Any]:
    """The reply that an assistant's records come to, as the API would have sent it whole."""
    message: dict[str, Any] = {}
    message.update(said.record.get("message") or {})
    content = joined(said.contents)
    calls = any(isinstance(block, dict) and block.get("type") == "tool_use" for block in content)
    # Older versions note the reply before its stop reason is known.
    stop = message.get("stop_reason") or ("tool_use" if calls else "end_turn")
    return {**message, "content": content, "stop_reason": stop}


def _answer(said: _Said) -> Answer:
    if said.record.get("isApiErrorMessage"):
        status = said.record.get("apiErrorStatus")
        status = status if isinstance(status, int) else 400
        text = " ".join(
            str(block.get("text", "")) for block in joined(said.contents) if isinstance(block, dict)
        )
        kind = jsontext.string(said.record.get("apiErrorType")) or "api_error"
        error = {"type": "error", "error": {"type": kind, "message": text}}
        body = _raw(error)
        reply = reply_of(ANTHROPIC, error)
        return Answer(reply, status=status, kind="application/json", read_body=lambda: body)
    message = _reply(said)
    return Answer(
        reply_of(ANTHROPIC, message),
        kind="application/json",
        ended=_moment(said.record),
        read_body=lambda: _raw(message),
    )


def _raw(value: object) -> bytes:
    return b"" if value is None else jsontext.encode(value).encode("utf-8", "surrogatepass")


def _moment(record: Mapping[str, Any]) -> float | None:
    try:
        return datetime.fromisoformat(str(record.get("timestamp"))).timestamp()
    except ValueError:
        return None

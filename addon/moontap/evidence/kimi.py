"""Session files of Kimi CLI: the history (context.jsonl) and the events (wire.jsonl).

Lines in, turns out. Format: the public source of MoonshotAI/kimi-cli (`soul/context.py`,
`wire/file.py`, `wire/types.py`) and of its `kosong` (`message.py`), read in November 2026.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from moontap.evidence import protocols
from moontap.evidence.damage import Damage
from moontap.evidence.growing import Growing, first_text, reply_of
from moontap.evidence.lines import records
from moontap.evidence.place import Place
from moontap.evidence.telling import Answer, Teller, Told
from moontap.findings.types import Part
from moontap.rules import Rules
from moontap.wire import jsontext
from moontap.wire.protocol import ANTHROPIC, OPENAI, Wire

NOTE = (
    "it does not say what the client sent, so a call that it dropped on the way cannot be seen; "
    "a capture of moontap does"
)
_PARTS = Part.HISTORY | Part.TURNS | Part.REPLY


def context_turns(text: bytes, rules: Rules, damage: list[Damage]) -> Iterator[Told]:
    """A message a line; `_usage`, `_checkpoint` and the like are passed over."""
    found = [record for record in records(text, damage) if "role" in record.value]
    said = [record for record in found if not str(record.value["role"]).startswith("_")]
    wire = protocols.of_history([record.value for record in said]) or OPENAI
    told = _Told(wire, Teller(wire, rules), None, None)
    for record in said:
        if record.value["role"] == "assistant":
            yield told.reply(_plain(record.value), record.number)
        else:
            told.history.add(_plain(record.value), record.number)


class Wired:
    """The turns of a wire.jsonl."""

    def __init__(self, text: bytes, rules: Rules, damage: list[Damage]) -> None:
        self._text, self._damage = text, damage
        self._teller = Teller(OPENAI, rules)
        self._agents: dict[str | None, _Agent] = {}

    def turns(self) -> Iterator[Told]:
        """The exchanges; each sub-agent's as a conversation of its own."""
        for record in records(self._text, self._damage):
            message = record.value.get("message")
            if isinstance(message, dict):
                yield from self._event(message, record.number, None)
        for agent in self._agents.values():
            yield from agent.end()

    def _event(self, event: Mapping[str, Any], line: int, name: str | None) -> Iterator[Told]:
        kind, payload = event.get("type"), event.get("payload")
        if not isinstance(payload, dict):
            return
        if kind == "SubagentEvent":
            inner = payload.get("event")
            calls = [payload.get(key) for key in _AGENT_NAMES]
            if isinstance(inner, dict):
                yield from self._event(inner, line, first_text(calls) or "sub-agent")
            return
        agent = self._agents.get(name)
        if agent is None:
            told = _Told(OPENAI, self._teller, None, name)
            agent = self._agents[name] = _Agent(told)
        yield from agent.event(str(kind), payload, line)


_AGENT_NAMES = ("agent_id", "parent_tool_call_id", "task_tool_call_id")


@dataclass(slots=True)
class _Told:
    """Replies to a growing history."""

    wire: Wire
    teller: Teller
    session: str | None
    agent: str | None
    history: Growing = field(init=False)

    def __post_init__(self) -> None:
        self.history = Growing(self.wire)

    def reply(
        self, message: dict[str, Any], line: int, id_: str | None = None, *, cut: bool = False
    ) -> Told:
        """The reply that a message of the assistant is, which then joins the history."""
        lines = tuple(self.history.lines)
        body = _whole(self.wire, message, id_)
        reply = reply_of(self.wire, body)
        reply.complete = not cut
        answer = Answer(reply, kind="application/json", cut=cut, read_body=lambda: _raw(body))
        turn = self.teller.exchange(
            self.history.request(None),
            answer,
            _PARTS,
            session=self.session,
            agent=self.agent,
            size=self.history.size,
            label=f"line {line}",
        )
        self.history.add(message, line)
        return Told(turn, Place(lambda: lines, line, start=line))


@dataclass(slots=True)
class _Agent:
    """What one agent is in the middle of."""

    told: _Told
    message: dict[str, Any] | None = None
    line: int = 0
    id: str | None = None
    answered: list[tuple[dict[str, Any], int]] = field(default_factory=list)

    def event(self, kind: str, payload: dict[str, Any], line: int) -> Iterator[Told]:
        match kind:
            case "TurnBegin" | "SteerInput":
                yield from self.end()
                content = payload.get("user_input")
                self.told.history.add(_plain({"role": "user", "content": content}), line)
            case "StepBegin" | "TurnEnd":
                yield from self.end()
            case "StepInterrupted":
                yield from self.end(cut=True)
            case "CompactionEnd":
                yield from self.end()
                self.told.history = Growing(self.told.wire)
            case "ContentPart":
                self._begin(line)["content"].append(payload)
            case "ToolCall":
                call = {"type": "function", **payload}
                self._begin(line).setdefault("tool_calls", []).append(call)
            case "ToolCallPart":
                self._part(payload)
            case "StatusUpdate":
                self.id = jsontext.string(payload.get("message_id")) or self.id
            case "ToolResult":
                self.answered.append((_result(payload), line))
                if self.message is None:
                    self._take_answers()

    def end(self, *, cut: bool = False) -> Iterator[Told]:
        """The reply is whole, if there is one: it and its results go into the history."""
        message, self.message = self.message, None
        if message is not None:
            yield self.told.reply(_plain(message), self.line, self.id, cut=cut)
        self.id = None
        self._take_answers()

    def _take_answers(self) -> None:
        for answer, line in self.answered:
            self.told.history.add(answer, line)
        self.answered = []

    def _begin(self, line: int) -> dict[str, Any]:
        if self.message is None:
            self.message, self.line = {"role": "assistant", "content": []}, line
        return self.message

    def _part(self, payload: Mapping[str, Any]) -> None:
        calls = (self.message or {}).get("tool_calls")
        piece = payload.get("arguments_part")
        if not calls or not isinstance(piece, str):
            return
        function = calls[-1].get("function")
        if isinstance(function, dict):
            begun = jsontext.string(function.get("arguments")) or ""
            function = {**function, "arguments": begun + piece}
            calls[-1] = {**calls[-1], "function": function}


def _plain(message: Mapping[str, Any]) -> dict[str, Any]:
    """A message as Kimi CLI sends it: its thinking as `reasoning_content`."""
    content = message.get("content")
    if not isinstance(content, list):
        return dict(message)
    thought = [part for part in content if isinstance(part, dict) and part.get("type") == "think"]
    if not thought:
        return dict(message)
    rest = [part for part in content if part not in thought]
    texts = "".join(str(part.get("think") or "") for part in thought)
    return {**message, "content": rest, "reasoning_content": texts}


def _result(payload: Mapping[str, Any]) -> dict[str, Any]:
    value = payload.get("return_value", payload.get("result"))
    output = value.get("output", value.get("message")) if isinstance(value, dict) else value
    return {"role": "tool", "tool_call_id": payload.get("tool_call_id"), "content": output}


def _whole(wire: Wire, message: Mapping[str, Any], id_: str | None) -> dict[str, Any]:
    """The reply that would have brought a message; with the stop reason that fits it."""
    if wire is ANTHROPIC:
        content = message.get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content or ""}]
        calls = any(isinstance(one, dict) and one.get("type") == "tool_use" for one in blocks)
        stop = "tool_use" if calls else "end_turn"
        return {"id": id_, "type": "message", **message, "content": blocks, "stop_reason": stop}
    content = message.get("content")
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(text for text in texts if isinstance(text, str))
    finish = "tool_calls" if message.get("tool_calls") else "stop"
    choice = {"index": 0, "message": {**message, "content": content}, "finish_reason": finish}
    return {"id": id_, "object": "chat.completion", "choices": [choice]}


def _raw(value: object) -> bytes:
    return jsontext.encode(value).encode("utf-8", "surrogatepass")

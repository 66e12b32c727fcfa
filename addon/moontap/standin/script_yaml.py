"""Reads a script from YAML, strictly.

In: YAML text and the name to call it by. Out: a `Script`, or a `ScriptError` that names the file,
the line and the remedy. It never guesses: an unknown key or a bad value is an error.

    model: kimi-k3            # the model named in replies
    seed: 7                   # makes message ids, request ids and unique call ids repeatable
    steps:                    # each step is one reply of the model
      - text: "I look where I am."
        thinking: "Where am I?"
        calls: [{name: Bash, arguments: {command: pwd, description: where}}]
      - calls:                # several calls are parallel calls
          - {name: Bash, arguments: {command: ls, description: files}}
          - {name: Bash, arguments: {command: date, description: time}}
    final: "All done."        # the reply once every step is seen answered
    conversations:            # others, known by a piece of their opening user text
      - {match: "You are a helper", steps: [], final: "Helped."}
    pacing: {first_byte_ms: 0, event_ms: 0, delta_chars: 12}
    faults:                   # `at_request: N` (from 1) or `always: true`
      - {at_request: 3, kind: cut, after_events: 5}
      - {at_request: 1, kind: status, status: 429, body: "slow down"}
      - {always: true, kind: encoding, encoding: br, header: false}
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from moontap import yamlfile
from moontap.standin.script import (
    Call,
    Conversation,
    Fault,
    FaultKind,
    Pacing,
    Script,
    ScriptError,
    Step,
)
from moontap.yamlfile import Node, YamlError

Reader = Callable[[Node], Any]

_FAULT_FIELDS: Mapping[FaultKind, tuple[str, ...]] = {
    FaultKind.CUT: ("after_events", "after_bytes"),
    FaultKind.ERROR_EVENT: ("after_events", "message"),
    FaultKind.STATUS: ("status", "body", "content_type", "message"),
    FaultKind.STALL: ("ms", "after_events"),
    FaultKind.ENCODING: ("encoding", "header"),
    FaultKind.SAME_ID: ("id",),
    FaultKind.CHOICES: ("choices",),
    FaultKind.FORGET: ("calls",),
}
_FAULT_NEEDS: Mapping[FaultKind, tuple[str, ...]] = {
    FaultKind.STATUS: ("status",),
    FaultKind.STALL: ("ms",),
    FaultKind.ENCODING: ("encoding",),
    FaultKind.CHOICES: ("choices",),
}


def load_script(path: str | Path) -> Script:
    """The script in a UTF-8 file. `ScriptError` where it cannot be read or used."""
    try:
        return _script(yamlfile.load(str(path)), str(path))
    except YamlError as e:
        raise ScriptError(str(e)) from None


def parse_script(text: str, name: str = "script") -> Script:
    """The script in a text; `name` stands in error messages."""
    try:
        return _script(yamlfile.parse(text, name), name)
    except YamlError as e:
        raise ScriptError(str(e)) from None


def _script(root: Node | None, name: str) -> Script:
    if root is None:
        raise ScriptError(f"{name}:1: the script is empty; give at least 'steps' or 'final'")
    fields = _fields(
        root,
        {
            "model": Node.text,
            "seed": Node.integer,
            "steps": _each(_step),
            "final": Node.text,
            "conversations": _each(_conversation),
            "pacing": _pacing,
            "faults": _each(_fault),
        },
    )
    default = Conversation(**{k: fields.pop(k) for k in ("steps", "final") if k in fields})
    return Script(default=default, **fields)


def _conversation(node: Node) -> Conversation:
    readers: dict[str, Reader] = {
        "match": _filled_text,
        "steps": _each(_step),
        "final": Node.text,
    }
    return Conversation(**_fields(node, readers, needs=("match",)))


def _step(node: Node) -> Step:
    readers: dict[str, Reader] = {
        "text": Node.text,
        "thinking": Node.text,
        "calls": _each(_call),
    }
    fields = _fields(node, readers, needs=("calls",))
    if not fields["calls"]:
        raise node.error(
            f"'{node.name}' has no calls; give one, or use 'final' for the closing text"
        )
    return Step(**fields)


def _call(node: Node) -> Call:
    readers: dict[str, Reader] = {"name": _filled_text, "arguments": _arguments}
    return Call(**_fields(node, readers, needs=("name",)))


def _arguments(node: Node) -> Any:
    return node.json() if node.is_mapping else node.text()


def _pacing(node: Node) -> Pacing:
    readers: dict[str, Reader] = {
        "first_byte_ms": _milliseconds,
        "event_ms": _milliseconds,
        "delta_chars": _positive,
    }
    return Pacing(**_fields(node, readers))


def _fault(node: Node) -> Fault:
    readers: dict[str, Reader] = {
        "kind": lambda kind: FaultKind(kind.choice(tuple(FaultKind))),
        "at_request": _positive,
        "always": Node.boolean,
        "after_events": _count,
        "after_bytes": _count,
        "ms": _milliseconds,
        "status": lambda status: status.integer(minimum=200, maximum=599),
        "body": Node.text,
        "content_type": _filled_text,
        "message": Node.text,
        "encoding": lambda encoding: encoding.choice(("gzip", "br", "zstd")),
        "header": Node.boolean,
        "id": Node.text,
        "choices": _positive,
        "calls": _positive,
    }
    fields = _fields(node, readers, needs=("kind",))
    kind = fields["kind"]
    allowed = _FAULT_FIELDS.get(kind, ())
    for key, member in node.members(needs=_FAULT_NEEDS.get(kind, ())).items():
        if key not in ("kind", "at_request", "always", *allowed):
            takes = ", ".join(allowed) or "no settings"
            raise member.error(f"fault '{kind}' has no '{key}'; it takes {takes}")
    if bool(fields.pop("always", False)) == ("at_request" in fields):
        raise node.error(
            f"fault '{kind}' does not say when; "
            "give either 'at_request: N' (from 1) or 'always: true'"
        )
    return Fault(**fields)


def _fields(
    node: Node, readers: Mapping[str, Reader], needs: tuple[str, ...] = ()
) -> dict[str, Any]:
    members = node.members(known=readers, needs=needs)
    return {key: readers[key](member) for key, member in members.items()}


def _each(reader: Reader) -> Reader:
    return lambda node: tuple(reader(item) for item in node.items())


def _filled_text(node: Node) -> str:
    value = node.text()
    if not value:
        raise node.error(f"'{node.name}' is empty; write something here")
    return value


def _count(node: Node) -> int:
    return node.integer(minimum=0)


def _positive(node: Node) -> int:
    return node.integer(minimum=1)


def _milliseconds(node: Node) -> float:
    return node.number(minimum=0)

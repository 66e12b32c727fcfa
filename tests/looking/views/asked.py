"""Requests of both protocols in a few words, for the tests of what is shown of them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from moontap.looking.facts import FindingFact
from moontap.looking.views.shown import ShownRequest
from moontap.wire.protocol import ANTHROPIC, OPENAI
from tests.samples import dump


def user(*content: Any) -> dict[str, Any]:
    """A message of either protocol; texts, or blocks of Messages."""
    return _message("user", content)


def assistant(*content: Any) -> dict[str, Any]:
    return _message("assistant", content)


def use(id_: Any, name: str = "Bash", **arguments: Any) -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": arguments}


def result(id_: Any, content: Any = "ok", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": content, **more}


def calls(*made: tuple[Any, str], content: Any = "", **more: Any) -> dict[str, Any]:
    """An assistant's message of Chat Completions: id and arguments of each call of Bash."""
    entries = [
        {"id": id_, "type": "function", "function": {"name": "Bash", "arguments": arguments}}
        for id_, arguments in made
    ]
    return {"role": "assistant", "content": content, "tool_calls": entries, **more}


def tool(id_: Any, content: Any = "ok") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": content}


def messages(history: Sequence[Any], ask: dict[str, Any] | None = None, **more: Any) -> Any:
    """A request of Messages. ask: more of its members; more: of what is known of it."""
    return _shown(ANTHROPIC, history, ask, more)


def chat(history: Sequence[Any], ask: dict[str, Any] | None = None, **more: Any) -> Any:
    """The same of Chat Completions."""
    return _shown(OPENAI, history, ask, more)


def known(severity: str, code: str) -> FindingFact:
    """As much of a finding as a flow's metadata tells."""
    return FindingFact(code, severity, "", "", f"docs/findings.md#{code}")


def _shown(
    wire: Any, history: Sequence[Any], ask: dict[str, Any] | None, more: dict[str, Any]
) -> ShownRequest:
    asked = {"model": "kimi-k3", "stream": True, "messages": list(history), **(ask or {})}
    body = json.dumps(asked).encode() if more.pop("escaped", False) else dump(asked)
    return ShownRequest(wire, wire.read_request(body), body, more.pop("size", 1234), **more)


def _message(role: str, content: Sequence[Any]) -> dict[str, Any]:
    if len(content) == 1 and isinstance(content[0], str):
        return {"role": role, "content": content[0]}
    blocks = [{"type": "text", "text": c} if isinstance(c, str) else c for c in content]
    return {"role": role, "content": blocks}

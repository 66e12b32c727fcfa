"""A small agent of either protocol, whose every request byte is the same at each run.

Replies in, requests out. It reads replies with a few lines of its own, shares nothing with the
tap, and keeps the history a good client keeps; a recipe may edit that as bad clients do.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from moontap.standin import coding
from scripts.flows_lib.scene import Got, Stage

MESSAGES, CHAT = "/anthropic/v1/messages", "/v1/chat/completions"


@dataclass(slots=True)
class Call:
    """A call of a reply. arguments: the JSON text."""

    id: Any
    name: str
    arguments: str


@dataclass(slots=True)
class Heard:
    """What a reply said. signature: of its thinking; Messages alone has that."""

    text: str
    calls: list[Call]
    thinking: str = ""
    signature: str = ""


class Agent:
    """Asks, does what it is told, and asks again.

    path: MESSAGES or CHAT, which also says the protocol. keeps: sends thinking back; most do not.
    more: further members of its requests. said, headers: its history, and what goes with each
    request; to be edited at will.
    """

    def __init__(
        self,
        stage: Stage,
        path: str,
        opening: str = "Look around.",
        *,
        stream: bool = True,
        model: str = "kimi-k3",
        tools: Sequence[str] = ("Bash",),
        headers: Mapping[str, str] | None = None,
        keeps: bool = False,
        **more: Any,
    ) -> None:
        self.said: list[dict[str, Any]] = [{"role": "user", "content": opening}]
        self.stream = stream
        self._keeps = keeps
        self._stage, self._path = stage, path
        self.headers = dict(headers or {})
        self._fixed = {"model": model, **more}
        self._tools = [_tool(path, name) for name in tools]
        self._results = 0

    async def run(self, turns: int = 12) -> None:
        """Until a reply has no call."""
        for _ in range(turns):
            calls = await self.ask()
            if not calls:
                return
            self.answer(calls)

    async def ask(self) -> list[Call]:
        """One exchange; its calls. The reply becomes part of the history."""
        return self.hear(await self.send())

    async def send(self, stream: bool | None = None) -> Got:
        """Send the history as it stands."""
        streams = self.stream if stream is None else stream
        body = {**self._fixed, "stream": streams, "messages": self.said, "tools": self._tools}
        if self._path == MESSAGES:
            body["max_tokens"] = 1024
        return await self._stage.post(self._path, dump(body), self.headers)

    def hear(self, got: Got) -> list[Call]:
        """Take a reply into the history."""
        heard = hear(self._path, got)
        if not self._keeps:
            heard.thinking = ""
        if heard.text or heard.calls:
            self.said.append(_assistant(self._path, heard))
        return heard.calls

    def answer(self, calls: Sequence[Call]) -> None:
        """Answer calls, in their order, all at once."""
        results = [self.result(call) for call in calls]
        if self._path == MESSAGES:
            self.said.append({"role": "user", "content": results})
        else:
            self.said += results

    def result(self, call: Call, text: str | None = None) -> dict[str, Any]:
        """The result of a call, as this protocol has it; a `tool_result` block or a message."""
        if text is None:
            self._results += 1
            text = f"result {self._results}"
        if self._path == MESSAGES:
            return {"type": "tool_result", "tool_use_id": call.id, "content": text}
        return {"role": "tool", "tool_call_id": call.id, "content": text}


def dump(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def hear(path: str, got: Got) -> Heard:
    """What a reply says, as far as it goes."""
    if got.status != 200:
        return Heard("", [])
    body = got.body
    encoding = got.headers.get("content-encoding", "")
    if body.startswith(b"\x1f\x8b"):
        encoding = "gzip"
    body = coding.decode(body, encoding)
    if body.lstrip().startswith(b"{"):
        return _whole(path, body)
    said = list(_events(body))
    return _messages(said) if path == MESSAGES else _chat(said)


def _events(body: bytes) -> Iterator[dict[str, Any]]:
    text = body.decode("utf-8", "replace").removeprefix("\ufeff").replace("\r\n", "\n")
    held: list[str] = []
    for line in [*text.replace("\r", "\n").split("\n"), ""]:
        if line.startswith("data:"):
            held.append(line[5:])
        elif not line.strip() and held:
            yield from _parsed("\n".join(held), held)
            held = []


def _parsed(whole: str, lines: list[str]) -> Iterator[dict[str, Any]]:
    for text in (whole, *lines):
        try:
            value = json.loads(text)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value
        if text is whole:
            return


def _messages(said: list[dict[str, Any]]) -> Heard:
    heard = Heard("", [])
    at: dict[int, Call] = {}
    for event in said:
        index = event.get("index", 0)
        block, delta = event.get("content_block", {}), event.get("delta", {})
        if block.get("type") == "tool_use":
            given = block.get("input")
            at[index] = Call(block.get("id"), block.get("name", ""), _text(given) if given else "")
            heard.calls.append(at[index])
        elif "partial_json" in delta and index in at:
            at[index].arguments += delta["partial_json"]
        elif delta.get("type") == "text_delta" and index not in at:
            heard.text += delta["text"]
        heard.thinking += delta.get("thinking", "")
        heard.signature += delta.get("signature", "")
    return heard


def _chat(said: list[dict[str, Any]]) -> Heard:
    heard = Heard("", [])
    at: dict[int, Call] = {}
    for event in said:
        for choice in event.get("choices", ()):
            delta = choice.get("delta", {})
            if choice.get("index", 0):
                continue  # clients read the first choice
            heard.text += delta.get("content") or ""
            heard.thinking += delta.get("reasoning_content") or ""
            for part in delta.get("tool_calls") or ():
                function = part.get("function", {})
                call = at.get(part.get("index") or 0)
                if call is None:
                    call = at[part.get("index") or 0] = Call(None, "", "")
                    heard.calls.append(call)
                call.id = call.id or part.get("id")
                call.name += function.get("name") or ""
                call.arguments += function.get("arguments") or ""
    return heard


def _whole(path: str, body: bytes) -> Heard:
    value = json.loads(body)
    if path == MESSAGES:
        blocks = value.get("content", [])
        return Heard(
            "".join(block["text"] for block in blocks if block["type"] == "text"),
            [
                Call(block.get("id"), block["name"], _text(block.get("input")))
                for block in blocks
                if block["type"] == "tool_use"
            ],
            "".join(block["thinking"] for block in blocks if block["type"] == "thinking"),
            "".join(block["signature"] for block in blocks if block["type"] == "thinking"),
        )
    message = value["choices"][0]["message"]
    return Heard(
        message.get("content") or "",
        [
            Call(call.get("id"), call["function"]["name"], call["function"]["arguments"])
            for call in message.get("tool_calls") or ()
        ],
        message.get("reasoning_content") or "",
    )


def _assistant(path: str, heard: Heard) -> dict[str, Any]:
    if path == MESSAGES:
        content: list[dict[str, Any]] = []
        if heard.thinking:
            content.append(
                {
                    "type": "thinking",
                    "thinking": heard.thinking,
                    "signature": heard.signature,
                }
            )
        if heard.text:
            content.append({"type": "text", "text": heard.text})
        for call in heard.calls:
            content.append(
                {"type": "tool_use", "id": call.id, "name": call.name, "input": _value(call)}
            )
        return {"role": "assistant", "content": content}
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {"name": call.name, "arguments": call.arguments},
        }
        for call in heard.calls
    ]
    message: dict[str, Any] = {"role": "assistant", "content": heard.text}
    if heard.thinking:
        message["reasoning_content"] = heard.thinking
    return {**message, "tool_calls": calls} if calls else message


def _value(call: Call) -> Any:
    try:
        return json.loads(call.arguments or "{}")
    except ValueError:
        return {}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else dump(value).decode()


def _tool(path: str, name: str) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    if path == MESSAGES:
        return {"name": name, "description": "Runs a command.", "input_schema": schema}
    function = {"name": name, "description": "Runs a command.", "parameters": schema}
    return {"type": "function", "function": function}

"""Requests as an agent sends them: Messages conversations of a given size that grow by a pair a
turn. Pure and repeatable: the same seed gives the same texts, ids apart. Never reads real traffic.
"""

import json
import random
from itertools import cycle
from uuid import uuid4

# Listings, snippets, files: what tools return, from a line to a screenful and more.
_RESULT_SIZES = (200, 1_000, 4_000, 16_000)
_WORDS = (
    *("def", "return", "self", "import", "value", "error", "line", "open", "test", "data", "type"),
    *("src/app.py:120", '"quoted"', "{}", "[]", "->", "==", "\t", "#", "café", "数据", "C:\\temp"),
)
_SMALL = 4_000  # below this size a request has no room for results of realistic length


class Conversation:
    """The message list of one agent, kept as encoded messages so that a turn costs one join.

    size: bytes of the first request body, reached within one pair. One session id for all turns.
    """

    def __init__(self, size: int, seed: int = 1) -> None:
        self.session = str(uuid4())
        self.turns = 0
        self._random = random.Random(seed)
        self._sizes = cycle((60,) if size < _SMALL else _RESULT_SIZES)
        preamble = {
            "model": "kimi-k3",
            "max_tokens": 32_000,
            "stream": True,
            "metadata": {"user_id": json.dumps({"session_id": self.session})},
            "system": [{"type": "text", "text": self._text(min(size // 8, 15_000))}],
            "tools": [self._tool(name, min(size // 16, 4_000)) for name in ("Bash", "Read")],
        }
        self._head = _encode(preamble)[:-1] + b',"messages":['
        self._messages = [_encode({"role": "user", "content": self._text(min(size // 8, 2_000))})]
        length = len(self._head) + len(self._messages[0])
        while length < size - _SMALL // 2:
            length += self._append(f"toolu_01{self._random.getrandbits(96):024x}")

    def body(self) -> bytes:
        """The next request body."""
        return self._head + b",".join(self._messages) + b"]}"

    def answer(self, call_id: str) -> None:
        """Take in the reply's tool call under the id the client saw, and its result."""
        self.turns += 1
        self._append(call_id)

    def _append(self, call_id: str) -> int:
        command = self._text(60)
        call = {"type": "tool_use", "id": call_id, "name": "Bash", "input": {"command": command}}
        result = {
            "type": "tool_result",
            "tool_use_id": call_id,
            "content": self._text(next(self._sizes)),
        }
        assistant = {"role": "assistant", "content": [{"type": "text", "text": "Next."}, call]}
        pair = [_encode(assistant), _encode({"role": "user", "content": [result]})]
        self._messages += pair
        return sum(map(len, pair)) + 2

    def _text(self, size: int) -> str:
        words = self._random.choices(_WORDS, k=size // 6 + 1)
        lines = [" ".join(words[at : at + 12]) for at in range(0, len(words), 12)]
        return "\n".join(lines)[:size]

    def _tool(self, name: str, size: int) -> dict[str, object]:
        schema = {"type": "object", "properties": {"command": {"type": "string"}}}
        return {"name": name, "description": self._text(size), "input_schema": schema}


def _encode(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()

"""The form of messages, whatever somebody sends. What is odd is with the check's own cases."""

import json
import random
from typing import Any

import pytest

from moontap.wire import anthropic, form, openai

WORDS = ("role", "content", "type", "text", "tool_use", "tool_calls", "function", "name", "\ud800")


def anything(random_: random.Random, depth: int = 4) -> Any:
    kind = random_.randrange(8 if depth else 6)
    if kind == 6:
        return [anything(random_, depth - 1) for _ in range(random_.randrange(4))]
    if kind == 7:
        return {random_.choice(WORDS): anything(random_, depth - 1) for _ in range(4)}
    return (None, True, 7, 1.5, random_.choice(WORDS), "assistnat")[kind]


@pytest.mark.parametrize("seed", range(20))
def test_nothing_makes_it_raise(seed: int) -> None:
    random_ = random.Random(seed)
    for _ in range(50):
        message = anything(random_)
        form.of_messages(message)
        form.of_chat(message)
        body = json.dumps({"messages": [{"role": "user", "content": "go"}, message]}).encode()
        for read in (anthropic.read_request, openai.read_request):
            assert len(read(body).messages) == 2


def test_what_is_nested_too_deeply_is_taken_as_it_is() -> None:
    deep = b"[" * 900 + b"]" * 900
    body = b'{"messages":[{"role":"assistnat","content":"x","more":%s}]}' % deep
    for read in (anthropic.read_request, openai.read_request):
        (message,) = read(body).messages
        assert message.role == "assistnat"
    assert form.looked_at(b"[" * 100_000, form.of_chat) == ()

from __future__ import annotations

import pytest

from moontap.replay.difference import between
from moontap.replay.keys import Keys
from moontap.rules import Rules
from tests.replay.test_keys import (
    GO,
    LATER,
    READ,
    TOOL,
    answers,
    asks,
    call,
    chat,
    messages,
    result,
    text,
    use,
)
from tests.samples import CHAT, MESSAGES, messages_request

LONG = "the quick brown fox jumps over the lazy dog " * 9
PAIR = ("assistant", [use("a"), use("b")])


@pytest.mark.parametrize(
    ("path", "recorded", "live", "said"),
    [
        (
            MESSAGES,
            messages(("user", "go"), model="kimi-k3"),
            messages(("user", "go"), model="kimi-k2"),
            "`model`: recorded 'kimi-k3', now 'kimi-k2'",
        ),
        (
            MESSAGES,
            messages_request(stream=True),
            messages_request(stream=False),
            "`stream`: recorded 'true', now 'false'",
        ),
        (
            MESSAGES,
            messages(("user", "go"), tools=[TOOL]),
            messages(("user", "go"), tools=[READ]),
            "`tools`: recorded also Bash; now also Read",
        ),
        (
            MESSAGES,
            messages(("user", "go"), tools=[TOOL]),
            messages(("user", "go"), tools=[{**TOOL, "description": "x"}]),
            'tool Bash: recorded \'{"input_schema":{…\', now \'{"description":"x",…\'',
        ),
        (
            MESSAGES,
            messages(("user", LONG + "a" + LONG)),
            messages(("user", LONG + "b" + LONG)),
            "messages[0] (user), text: recorded '…ps over the lazy dog athe quick brown fox jumps "
            "over the lazy dog the quick brown fo…', now '…ps over the lazy dog bthe quick brown "
            "fox jumps over the lazy dog the quick brown fo…'",
        ),
        (
            MESSAGES,
            messages(("user", "go"), PAIR, ("user", [result("a", "x"), result("b", "y")])),
            messages(("user", "go"), PAIR, ("user", [result("b", "z"), result("a", "x")])),
            "messages[2] (user), tool result: recorded 'y', now 'z'",
        ),
        (
            CHAT,
            chat(GO, asks(call("a"), call("b")), answers("a", "x"), answers("b", "y")),
            chat(LATER, GO, asks(call("a"), call("b")), answers("b", "y"), answers("a", "z")),
            "messages[3] (tool), tool result: recorded 'x', now 'z'",
        ),
        (
            MESSAGES,
            messages(("user", "go"), ("assistant", [use("a", "pwd")])),
            messages(("user", "go"), ("assistant", [use("a", "ls")])),
            'messages[1] (assistant), tool call: recorded \'["Bash",{"command":"pwd"}]\', '
            'now \'["Bash",{"command":"ls"}]\'',
        ),
        (
            MESSAGES,
            messages(("user", "go"), ("assistant", [use("a")])),
            messages(("user", "go"), ("assistant", "(no content)")),
            'messages[1] (assistant): recorded tool call \'["Bash",{"command":"pwd"}]\', '
            "now text '(no content)'",
        ),
        (
            MESSAGES,
            messages(("user", "go")),
            messages(("user", [text("go"), text("on")])),
            "messages[0] (user): now also text 'on'",
        ),
        (
            MESSAGES,
            messages(("user", [text("go"), text("on")])),
            messages(("user", "go")),
            "messages[0] (user): recorded also text 'on'",
        ),
        (
            MESSAGES,
            messages(("user", "go"), ("user", "on")),
            messages(("user", "go")),
            "it ends where the recorded one has messages[1], user text 'on'",
        ),
        (
            MESSAGES,
            messages(("user", "go")),
            messages(("user", "go"), ("system", "x"), ("assistant", "on")),
            "the recorded one ends before messages[2], assistant text 'on'",
        ),
        (
            MESSAGES,
            messages(("user", "go")),
            messages(("assistant", "go")),
            "messages[0]: recorded user text 'go', now assistant text 'go'",
        ),
        (
            MESSAGES,
            messages(PAIR, ("user", [result("a", "x")])),
            messages(PAIR, ("user", [result("b", "x")])),
            "tool results answer other calls",
        ),
        ("/v1/files", b'{"a":1}', b'{"a":2}', "the body: recorded '{\"a\":1}', now '{\"a\":2}'"),
        ("/v1/files", b"one", b"two", "the body: recorded 'one', now 'two'"),
        (MESSAGES, messages(("user", "go")), b"[]", 'the body: recorded \'{"model": "kimi-k3"…'),
    ],
)
def test_the_first_difference(path: str, recorded: bytes, live: bytes, said: str) -> None:
    keys = Keys(Rules())
    start, _, _ = said.partition("…")
    found = between(keys, "POST", path, recorded, live)
    assert found.startswith(start)
    assert len(found) < 300

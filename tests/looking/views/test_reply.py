from __future__ import annotations

import json
from typing import Any

import pytest

from moontap.looking.facts import FindingFact
from moontap.looking.views.page import FOLD
from moontap.looking.views.reply import reply_page
from moontap.looking.views.shown import ShownReply
from moontap.looking.views.usage import usage_words
from moontap.wire.protocol import ANTHROPIC, OPENAI, Wire, read_stream
from tests.looking.views.asked import known
from tests.samples import chat_events, chat_whole, dump, messages_events, messages_whole


def streamed(wire: Wire, *events: bytes, **more: Any) -> ShownReply:
    body = b"".join(events)
    return ShownReply(wire, read_stream(wire, body), body, 200, True, **more)


def whole(wire: Wire, body: bytes, status: int = 200, **more: Any) -> ShownReply:
    return ShownReply(wire, wire.reader().whole(body), body, status, False, **more)


def event(**data: Any) -> bytes:
    return b"data: %s\n\n" % dump(data)


def delta(**said: Any) -> bytes:
    return event(choices=[{"index": 0, "delta": said}])


def call(arguments: str, *, ended: bool = True, **more: Any) -> ShownReply:
    """A Chat Completions stream of one call."""
    function = {"name": "Bash", "arguments": arguments}
    events = [delta(tool_calls=[{"index": 0, "id": "Bash:0", "function": function}])]
    if ended:
        events.append(event(choices=[{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]))
    return streamed(OPENAI, *events, **more)


MESSAGE = {"type": "message", "role": "assistant", "id": "msg_a1", "model": "kimi-k3"}

CASES: dict[str, tuple[ShownReply, str]] = {
    "a streamed call": (
        streamed(
            ANTHROPIC,
            *messages_events("Bash_0"),
            upstream_ids=["Bash_0"],
            seconds=1.234,
            request_id="req-1",
        ),
        """\
reply: (no model), streamed, 1.23 s
stop: tool_use
calls: Bash
call: Bash
  id: Bash_0
  upstream id: Bash_0  # the same
  arguments: {"command": "pwd"}
message id: msg_a1
request id: req-1
""",
    ),
    "the same in Chat Completions": (
        streamed(OPENAI, *chat_events("Bash:0", "Bash:1")),
        """\
reply: (no model), streamed
stop: tool_calls
calls: Bash ×2
call: Bash
  id: Bash:0
  upstream id: Bash:0  # the same
  arguments: {"command": "pwd"}
call: Bash
  id: Bash:1
  upstream id: Bash:1  # the same
  arguments: {"command": "pwd"}
message id: cmpl-x1
""",
    ),
    "a rewritten call, its result and what was found": (
        whole(
            ANTHROPIC,
            messages_whole("Bash_0_tq4k2xw7m3a", "x"),
            upstream_ids=["Bash_0", None],
            used=frozenset(("Bash_0",)),
            results=["ok in 0.4 s", None],
            findings=[known("error", "id-reused"), known("info", "slow")],
        ),
        """\
reply: (no model), whole
calls: Bash ×2
findings:
  error id-reused  # docs/findings.md#id-reused
  info slow  # docs/findings.md#slow
call: Bash
  id: Bash_0_tq4k2xw7m3a
  upstream id: Bash_0  # rewritten; used before in this conversation
  result: ok in 0.4 s
  arguments: {"command": "pwd"}
call: Bash
  id: x
  upstream id: (no id)  # rewritten
  arguments: {"command": "pwd"}
message id: msg_a1
""",
    ),
    "an id twice in one reply, and an empty one": (
        whole(OPENAI, chat_whole("Bash:0", "Bash:0", "")),
        """\
reply: (no model), whole
calls: Bash ×3
call: Bash
  id: Bash:0
  upstream id: Bash:0  # the same
  arguments: {"command": "pwd"}
call: Bash
  id: Bash:0
  upstream id: Bash:0  # the same; used before in this reply
  arguments: {"command": "pwd"}
call: Bash
  id: (empty id)
  upstream id: (empty id)  # the same
  arguments: {"command": "pwd"}
message id: cmpl-x1
""",
    ),
    "thinking and text": (
        streamed(
            OPENAI,
            event(id="c1", model="kimi-k3"),
            delta(reasoning_content="Where\nam I?"),
            delta(content="I look."),
            event(
                choices=[
                    {
                        "index": 0,
                        "delta": {},
                        "finish_reason": "stop",
                        "usage": {"prompt_tokens": 1234, "completion_tokens": 5},
                    }
                ]
            ),
            b"data: [DONE]\n\n",
        ),
        """\
reply: kimi-k3, streamed
stop: stop
thinking: |
  Where
  am I?
text: |
  I look.
usage: 1,234 in, 5 out
message id: c1
""",
    ),
    "several choices": (
        whole(
            OPENAI,
            dump(
                {
                    "choices": [
                        {"index": 0, "message": {"content": "one"}, "finish_reason": "stop"},
                        {
                            "index": 1,
                            "message": {
                                "tool_calls": [{"id": "a", "function": {"name": "Read"}}],
                            },
                            "finish_reason": "tool_calls",
                        },
                    ]
                }
            ),
        ),
        """\
reply: (no model), whole
calls: Read
choice 0:
  stop: stop
  text: |
    one
choice 1:
  stop: tool_calls
call: Read
  id: a
  upstream id: a  # the same
  choice: 1
  arguments: (empty)
""",
    ),
    "still coming": (
        call('{"comm', ended=False, live=True),
        """\
reply: (no model), streamed, still coming
calls: Bash
call: Bash
  id: Bash:0
  upstream id: Bash:0  # the same
  arguments: |  # still coming
    {"comm
""",
    ),
    "nothing has come yet": (
        streamed(OPENAI, live=True),
        "reply: (no model), streamed, still coming\nbody: (nothing yet)\n",
    ),
    "it broke off": (
        call('{"comm', ended=False, cut=True, trouble="peer closed connection"),
        """\
reply: (no model), streamed, broke off
trouble: peer closed connection
calls: Bash (broken arguments)
call: Bash
  id: Bash:0
  upstream id: Bash:0  # the same
  arguments: |  # not valid JSON: the reply ended here
    {"comm
""",
    ),
    "without an end, and nobody says why": (
        streamed(OPENAI, delta(content="I lo")),
        "reply: (no model), streamed, broke off\ntext: |\n  I lo\n",
    ),
    "broken arguments": (
        call('{"a":1 "b"}'),
        """\
reply: (no model), streamed, broke off
stop: tool_calls
calls: Bash (broken arguments)
call: Bash
  id: Bash:0
  upstream id: Bash:0  # the same
  arguments: |  # not valid JSON: Expecting ',' delimiter, character 7
    {"a":1 "b"}
""",
    ),
    "an error event": (
        streamed(
            ANTHROPIC,
            messages_events()[0],
            event(type="error", error={"type": "overloaded_error", "message": "Overloaded"}),
        ),
        """\
reply: (no model), streamed
error: {"type": "overloaded_error", "message": "Overloaded"}
message id: msg_a1
""",
    ),
    "a refusal of the guard": (
        whole(
            OPENAI,
            dump({"error": {"type": "invalid_request_error"}}),
            423,
            blocked="blocked_no_progress",
        ),
        """\
reply: (no model), whole, status 423
guard: moontap answered itself, upstream was not asked:
  blocked_no_progress
error: {"type": "invalid_request_error"}
""",
    ),
    "HTML": (
        whole(ANTHROPIC, b"<h1>504</h1>", 504),
        """\
reply: (no model), whole, status 504
body: |  # not read: Expecting value, character 0
  <h1>504</h1>
""",
    ),
    "nothing": (whole(OPENAI, b""), "reply: (no model), whole, empty\nbody: (empty)\n"),
    "other JSON": (
        whole(OPENAI, b'{"object":"list"}'),
        'reply: (no model), whole\nbody: {"object": "list"}\n',
    ),
    "no object": (
        whole(OPENAI, b"[1]"),
        "reply: (no model), whole\nbody: |  # not read: no JSON object\n  [1]\n",
    ),
    "a stream of which no event can be read": (
        streamed(ANTHROPIC, b"data: <html>\n\n"),
        """\
reply: (no model), streamed, broke off
note: 1 event could not be read: no JSON objects
body: |  # no event of it could be read
  data: <html>


""",
    ),
    "notes": (
        streamed(
            ANTHROPIC,
            *messages_events()[:1],
            event(type="message_start", message=MESSAGE),
            event(type="content_block_stop", index=0),
            event(type="content_block_stop", index=0),
            b"data: {\n\n",
            event(type="message_stop"),
            event(type="message_stop"),
            event(type="message_stop"),
        ),
        """\
reply: kimi-k3, streamed
note: the reply began anew once
note: content_block_stop came once more
note: message_stop came 2 more times
note: 1 event could not be read: no JSON objects
message id: msg_a1
""",
    ),
    "other ids came later": (
        streamed(
            OPENAI,
            delta(tool_calls=[{"index": 0, "id": "a", "function": {"name": "Bash"}}]),
            delta(tool_calls=[{"index": 0, "id": "b", "function": {"arguments": "{}"}}]),
            b"data: [DONE]\n\n",
        ),
        """\
reply: (no model), streamed
calls: Bash
call: Bash
  id: a
  upstream id: a  # the same
  note: other ids came for it later: b
  arguments: {}
""",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_reply_reads_so(name: str) -> None:
    shown, page = CASES[name]
    assert reply_page(shown) == page


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        ({"input_tokens": 1234, "output_tokens": 56}, "1,234 in, 56 out"),
        (
            {
                "input_tokens": 9,
                "output_tokens": 0,
                "cache_read_input_tokens": 1000,
                "cache_creation_input_tokens": 0,
            },
            "9 in, 0 out, 1,000 cached, 0 put into the cache",
        ),
        (
            # Moonshot says it at both places.
            {
                "prompt_tokens": 9,
                "completion_tokens": 4,
                "total_tokens": 13,
                "cached_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 5, "audio_tokens": 0},
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
            "9 in, 4 out, 5 cached, 3 reasoning, 13 in all",
        ),
        ({"new_tokens": 7, "none": 0, "service_tier": "std"}, "new_tokens 7, service_tier std"),
        ({"a": {"b": {"c": 1}}, "d": None, "e": True, "f": [1]}, ""),
        ({f"n{n}": n + 1 for n in range(50)}, ", ".join(f"n{n} {n + 1}" for n in range(12))),
    ],
)
def test_usage_is_said_in_words(usage: dict[str, object], words: str) -> None:
    assert usage_words(usage) == words


def test_long_texts_and_arguments_are_folded_and_all_is_there_in_full() -> None:
    text, command = "t" * 5000, "c" * 5000
    function = {"name": "Bash", "arguments": json.dumps({"command": command})}
    body = {"message": {"content": text, "tool_calls": [{"id": "a", "function": function}]}}
    shown = whole(OPENAI, dump({"choices": [body]}))
    folded, full = reply_page(shown), reply_page(shown, None)
    assert "text: |  # 5,000 characters, 4,400 left out: see Moontap-full" in folded
    assert "[… 4,400 characters …]" in folded
    assert "  arguments:  # folded: see Moontap-full" in folded
    assert len(folded) < 3 * FOLD
    assert command in full
    assert full.count("t") > 5000
    assert "…" not in full


@pytest.mark.parametrize(
    "evil",
    ["\x1b[2J", "\x00", "\x9b31m", "\u202e", "\u2028", "\r", "\ud800", "\x7f", "\ufeff"],
    ids=ascii,
)
def test_whatever_is_hostile_stands_as_an_escape(evil: str) -> None:
    """In every place of the page that the wire has a say in."""
    function = {"name": f"B{evil}", "arguments": json.dumps({"k" + evil: "v" + evil})}
    calls = [{"id": f"i{evil}", "function": function}, {"id": "b", "function": {"arguments": evil}}]
    reply = {
        "id": f"m{evil}",
        "model": f"k{evil}",
        "usage": {f"u{evil}": 1},
        "error": {"message": evil},
        "choices": [
            {
                "message": {"content": evil, "reasoning_content": evil, "tool_calls": calls},
                "finish_reason": f"s{evil}",
            }
        ],
    }
    body = json.dumps(reply).encode()
    shown = whole(
        OPENAI,
        body,
        upstream_ids=[f"u{evil}"],
        trouble=f"t{evil}",
        request_id=f"r{evil}",
        findings=[FindingFact(f"c{evil}", "error", m, m, m) for m in ("", f"m{evil}")],
        results=[f"ok{evil}"],
        blocked=f"b{evil}",
    )
    for fold in (FOLD, None):
        page = reply_page(shown, fold)
        assert evil not in page
        assert all(line.isprintable() for line in page.split("\n"))


@pytest.mark.parametrize("arguments", ["[" * 100_000, "[" * 100_000 + "]" * 100_000])
def test_deep_arguments_are_shown(arguments: str) -> None:
    page = reply_page(call(arguments))
    assert "  arguments: |\n    # nested too deeply to be set out" in page

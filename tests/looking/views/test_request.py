from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mitmproxy import contentviews, http
from mitmproxy.io import FlowReader
from mitmproxy.test import taddons

from moontap.looking import reading
from moontap.looking.contentviews import install
from moontap.looking.views.request import request_page
from moontap.looking.views.shown import ShownRequest
from moontap.looking.views.words import columns
from moontap.rules import Rules
from moontap.wire.protocol import ANTHROPIC, OPENAI
from tests.looking.views.asked import (
    assistant,
    calls,
    chat,
    known,
    messages,
    result,
    tool,
    use,
    user,
)

FLOWS = sorted((Path(__file__).parents[3] / "flows").glob("*.flow"))
PNG = {"type": "base64", "media_type": "image/png", "data": "A" * 16_460}
THOUGHT = {"type": "thinking", "thinking": "Let me look.", "signature": "s"}


def _schema(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {} for name in names}}


HISTORY = [
    user("<system-reminder>Be brief.</system-reminder>", "Why does the build fail? Look around."),
    assistant(THOUGHT, use("Bash_0", command="ls", description="List the files of the project")),
    user(result("Bash_0", "Makefile\nmain.c\n")),
    assistant(
        "I build it, and read the Makefile.",
        use("Bash_0", command="make"),
        use("Read_1", "Read", file_path="Makefile"),
        use("Read_2", "Read", file_path="main.c"),
    ),
    user(
        result("Bash_0", "make: *** No rule to make target 'mian.c'.  Stop.", is_error=True),
        result("Read_1", "all: mian.c"),
        result("Read_9", "what?"),
    ),
    assistant(
        "The Makefile says `mian.c`.\nI put it right.",
        use("Bash_3", command="sed -i s/mian/main/ Makefile && make", description="Put it right"),
        use("Read_1", "Read", file_path="shot.png"),
        use("Read_4", "Read", file_path="x"),
    ),
    user(
        result("Bash_3", "cc main.c\n" * 3),
        result(
            "Read_1", [{"type": "text", "text": "A picture:"}, {"type": "image", "source": PNG}]
        ),
        result("Read_1", "again"),
        "Go on.",
    ),
]
TOOLS = [
    {"name": "Bash", "input_schema": _schema("command", "description")},
    {"name": "Read", "input_schema": _schema("file_path")},
    {"type": "web_search_20250305", "name": "web_search"},
]
ASK = {
    "max_tokens": 32000,
    "tool_choice": {"type": "auto"},
    "system": "You are an agent.\nHelp.",
    "tools": TOOLS,
}
CHAT_HISTORY = [
    {"role": "system", "content": "You are an agent. " + "Help. " * 30},
    user("Look around."),
    calls(
        ("Bash:0", '{"command":"ls"}'),
        ("Bash:0", '{"command": "ls -'),
        content="I look.",
        reasoning_content="hm",
    ),
    tool("Bash:0", "a.txt"),
    user("(no content)"),
    calls(("Bash:1", '{"command":"cat a.txt'), content=None, reasoning_content="hm hm"),
    tool("Bash:1", ""),
    tool("Bash:7", "你好"),
    user("And this?", {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}),
]
CHAT_ASK = {
    "stream": False,
    "tools": [{"type": "function", "function": {"name": "Bash", "parameters": _schema("command")}}],
    "temperature": 0.6,
}

PAGE = """\
request: kimi-k3, streamed, 7 messages, 3 tools, 1,234 bytes, 18,906
  unpacked
session: 1f2e
agent: a1
findings:
  error id-reused  # docs/findings.md#id-reused
  info result-duplicated  # docs/findings.md#result-duplicated
tap: made ids of the history unique (2 places)
guard: added a reminder for the model, which is not shown here
history: 2 ids reused, 2 calls without result, 1 result without call,
  1 doubled result

new: messages 5 to 6
  message 5: assistant
    text: |
      The Makefile says `mian.c`.
      I put it right.
    call: Bash
      id: Bash_3
      arguments:
        {
          "command": "sed -i s/mian/main/ Makefile && make",
          "description": "Put it right"
        }
      result: ok in message 6
        cc main.c
        cc main.c
        cc main.c
    call: Read
      id: Read_1  # id reused: also the call of message 3
      arguments: {"file_path": "shot.png"}
      result: ok in message 6
        A picture:
        [image, 12,345 bytes]
      result: ok in message 6  # second result for this call
        again
    call: Read  # no result
      id: Read_4
      arguments: {"file_path": "x"}
  message 6: user  # 3 results, shown under the calls
    text: |
      Go on.

before: messages 0 to 4  # in short, results behind their calls
  0 user: Why does the build fail? Look around.
  1 assistant: (thinking, 12 bytes)
    Bash Bash_0 {"command": "ls", "description":… → ok in 2: Makefile main.c
  3 assistant: I build it, and read the Makefile.
    Bash Bash_0 {"command": "make"} → error in 4: make: *** No rule to make…
      # id reused: also the call of message 1
    Read Read_1 {"file_path": "Makefile"} → ok in 4: all: mian.c
    Read Read_2 {"file_path": "main.c"}  # no result
  4 user:
    result of Read_9: ok: what?  # no call has this id

tools: 3  # name (number of parameters)
  Bash (2), Read (1), web_search
max_tokens: 32000
tool_choice: {"type": "auto"}
system: 23 characters: You are an agent. Help.
"""

CHAT_PAGE = """\
request: kimi-k3, whole, 9 messages, 1 tool, 1,234 bytes
guard: answered this itself, upstream was not asked: blocked_no_progress
history: 1 id reused, 1 call without result, 1 result without call,
  1 empty turn

new: messages 5 to 8
  message 5: assistant
    thinking: 5 bytes
    call: Bash
      id: Bash:1
      arguments: |  # not valid JSON: Unterminated string, character 11
        {"command":"cat a.txt
      result: ok in message 6  # empty
  message 6: tool  # 1 result, shown under its call
  message 7: tool
    result: ok, of Bash:7  # no call has this id
      你好
  message 8: user
    text: |
      And this?
    image_url: 3 bytes

before: messages 0 to 4  # in short, results behind their calls
  0 system: You are an agent. Help. Help. Help. Help. Help. Help. Help. Hel…
  1 user: Look around.
  2 assistant: I look.
    Bash Bash:0 {"command":"ls"} → ok in 3: a.txt
    Bash Bash:0 {"command": "ls -
      # id reused: also another call of this message
      # no result
  4 user: (no content)  # empty turn

tools: 1  # name (number of parameters)
  Bash (1)
temperature: 0.6
"""

FULL_PAGE = """\
request: kimi-k3, streamed, 5 messages, 2 tools, 1,234 bytes
history: 1 id reused, 1 call without result, 1 result without call

new: messages 3 to 4
  message 3: assistant
    text: |
      I build it, and read the Makefile.
    call: Bash
      id: Bash_0  # id reused: also the call of message 1
      arguments: {"command": "make"}
      result: error in message 4
        make: *** No rule to make target 'mian.c'.  Stop.
    call: Read
      id: Read_1
      arguments: {"file_path": "Makefile"}
      result: ok in message 4
        all: mian.c
    call: Read  # no result
      id: Read_2
      arguments: {"file_path": "main.c"}
  message 4: user  # 2 results, shown under the calls
    result: ok, of Read_9  # no call has this id
      what?

before: messages 0 to 2
  message 0: user
    text: |
      <system-reminder>Be brief.</system-reminder>
    text: |
      Why does the build fail? Look around.
  message 1: assistant
    thinking: |
      Let me look.
    call: Bash
      id: Bash_0
      arguments:
        {
          "command": "ls",
          "description": "List the files of the project"
        }
      result: ok in message 2
        Makefile
        main.c
  message 2: user  # 1 result, shown under its call

tools: 2  # name (number of parameters)
  Read:
    {
      "name": "Read",
      "input_schema": {
        "type": "object",
        "properties": {
          "file_path": {}
        }
      }
    }
  web_search: {"type": "web_search_20250305", "name": "web_search"}
max_tokens: 32000
tool_choice: {"type": "auto"}
system: |
  You are an agent.
  Help.
"""


def test_a_page_of_messages() -> None:
    shown = messages(
        HISTORY,
        ASK,
        session="1f2e",
        agent="a1",
        findings=[known("error", "id-reused"), known("info", "result-duplicated")],
        healed=2,
        reminded=True,
    )
    assert request_page(shown) == PAGE


def test_a_page_of_chat_completions() -> None:
    shown = chat(CHAT_HISTORY, CHAT_ASK, new=5, blocked="blocked_no_progress")
    assert request_page(shown) == CHAT_PAGE


def test_a_page_in_full() -> None:
    shown = messages(HISTORY[:5], {**ASK, "tools": TOOLS[1:]})
    assert request_page(shown, None) == FULL_PAGE


@pytest.mark.parametrize("page", [PAGE, CHAT_PAGE])
def test_fits_beside_the_list(page: str) -> None:
    assert max(map(len, page.splitlines())) <= 77


STEP = [assistant(use("a")), user(result("a"))]
STARTED = "nothing: the conversation had got this far before"
UNSEEN = "  # the tap saw none of it before"


@pytest.mark.parametrize(
    ("history", "known", "new"),
    [
        ([], None, "nothing"),
        ([user("go")], None, "message 0"),
        ([user("go")], 0, "message 0"),
        ([user("go"), *STEP], None, "messages 1 to 2"),
        ([user("go"), *STEP], 1, "messages 1 to 2"),
        ([user("go"), *STEP, *STEP], None, "messages 3 to 4"),
        ([user("go"), *STEP, user("a"), user("b")], None, "messages 1 to 4"),
        # A reply that it had is shown with its results.
        ([user("go"), *STEP, *STEP], 4, "messages 3 to 4"),
        ([user("go"), *STEP, user("more")], 3, "message 3"),
        ([user("go"), *STEP, assistant("x")], 3, "message 3"),
        ([user("go"), *STEP], 3, STARTED),
        ([user("go"), *STEP], 9, STARTED),
        # Joined under way: nothing tells what is new, but that it is new to the tap.
        ([user("go"), *STEP], 0, "messages 0 to 2"),
        ([user("go"), *STEP * 6], 0, f"messages 11 to 12{UNSEEN}"),
        ([user("go")] * 12, 0, "messages 0 to 11"),
    ],
)
def test_what_is_new(history: list[Any], known: int | None, new: str) -> None:
    page = request_page(messages(history, new=known))
    assert [line for line in page.splitlines() if line.startswith("new:")] == [f"new: {new}"]
    parts = page.split("\nbefore:")
    detailed = [line for line in parts[0].splitlines() if line.startswith("  message ")]
    begins = 0 if not history else len(history) - len(detailed)
    assert (len(parts) == 2) == (begins > 0)


LOST = replace(known("error", "pair-dropped-by-client"), of_request=True)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        (
            {"ask": {"model": None}},
            "request: (no model), streamed, 1 message, 0 tools, 1,234 bytes",
        ),
        ({"ask": {"stream": False}}, "request: kimi-k3, whole, 1 message, 0 tools, 1,234 bytes"),
        ({"size": 10}, "request: kimi-k3, streamed, 1 message, 0 tools, 10 bytes, 85 unpacked"),
        ({"session": "s" * 200}, f"session: {'s' * 99}…"),
        ({"agent": "a\x1b[2J"}, r"agent: a\x1b[2J"),
        ({"healed": 1}, "tap: made ids of the history unique (1 place)"),
        (
            {"blocked": "blocked_limit"},
            "guard: answered this itself, upstream was not asked: blocked_limit",
        ),
        ({"exchange": 2, "conversation": 3}, "conversation: 3"),
        ({"exchange": 2}, "exchange: 2"),
        ({}, "history: fits together"),
        ({"findings": [LOST]}, "history: fits together  # but see findings"),
        ({"findings": [replace(LOST, severity="info")]}, "history: fits together"),
        ({"findings": [replace(LOST, of_request=False)]}, "history: fits together"),
        ({}, "tools: none"),
    ],
)
def test_the_head(more: dict[str, Any], line: str) -> None:
    assert line in request_page(messages([user("go")], **more)).splitlines()


@pytest.mark.parametrize(
    ("history", "known", "lines"),
    [
        # What answers an earlier call says which; what answers none says so.
        (
            [user("go"), assistant(use("a"), use("b")), user(result("a")), user(result("b", "B"))],
            3,
            ["  message 3: user", "    result: ok, of Bash b in message 1", "      B"],
        ),
        ([user(result("a", ""))], 0, ["    result: ok, of a  # no call has this id; empty"]),
        ([user(result("", "x"))], 0, ["    result: ok, of (empty id)  # names no call"]),
        (
            [user(result("a", "x")), assistant(use("a"))],
            0,
            ["    result: ok, of a  # its call comes later, in message 1"],
        ),
        (
            [user("go"), assistant(use("a")), user(result("a", "x")), user(result("a", "y"))],
            3,
            ["    result: ok, of Bash a in message 1  # second result for this call", "      y"],
        ),
        # The marks of a call.
        (
            [assistant(use("a"), use("a")), user(result("a", "x"))],
            None,
            [
                "    call: Bash  # no result",
                "      id: a  # id reused: also another call of this message",
            ],
        ),
        ([assistant(use(None))], None, ["      id: (no id)"]),
        ([assistant(use("null"))], None, ["      id: null  # that is no id"]),
        ([assistant(use("a", ""))], None, ["    call: (no tool name)  # no result"]),
        ([assistant({**use("a"), "input": None})], None, ["      arguments: null"]),
        ([user("")], None, ["  message 0: user  # empty turn"]),
        ([{"role": "usr", "content": "x"}], None, ['    # malformed: role is "usr"']),
        ([assistant("")], None, ["  message 0: assistant  # says nothing"]),
        # In short.
        ([assistant(""), *STEP], None, ["  0 assistant:  # says nothing"]),
        ([user(""), *STEP], None, ["  0 user:  # empty turn"]),
        ([{"role": "usr", "content": "x"}, *STEP], None, ["  0 usr: x", "    # malformed: role"]),
        ([user("<system-reminder>x</system-reminder>"), *STEP], None, ["  0 user: <system-re"]),
        ([user({"type": "image", "source": PNG}), *STEP], None, ["  0 user: (image)"]),
        (
            [assistant(use("a")), user(result("a", "")), *STEP],
            None,
            ["    Bash a {} → ok in 1: (e"],
        ),
        (
            [assistant(use("a")), user(result("a", "x"), result("a", "y")), *STEP],
            None,
            ["    Bash a {} → ok in 1: x", "      → ok in 1: y  # second result for this call"],
        ),
        ([user(result("a", "x")), *STEP], None, ["    result of a: ok: x  # its call comes later"]),
    ],
)
def test_the_place_of_things(history: list[Any], known: int | None, lines: list[str]) -> None:
    page = request_page(messages(history, new=known)).splitlines()
    at = next((n for n, line in enumerate(page) if line.startswith(lines[0])), None)
    assert at is not None, page
    for line, wanted in zip(page[at:], lines, strict=False):
        assert line.startswith(wanted)


@pytest.fixture(scope="module")
def _installed() -> Iterator[None]:
    install(lambda text: text, lambda flow: None, Rules)
    with taddons.context():
        yield


@pytest.mark.usefixtures("_installed")
@pytest.mark.parametrize("path", FLOWS, ids=lambda path: path.stem)
def test_saved_flows_show_as_conversations(path: Path) -> None:
    for flow in _flows(path):
        if reading.wire_of(flow) is None:
            continue
        shown = contentviews.prettify_message(flow.request, flow)
        assert shown.view_name == "Moontap-request"
        assert "shown raw" not in shown.text
        for id_ in reading.request_of(flow).request.call_ids:
            assert id_ in shown.text
        reply = contentviews.prettify_message(flow.response, flow).text if flow.response else ""
        lines = f"{shown.text}\n{reply}".splitlines()
        wide = [line for line in lines if columns(line) > 76]
        assert wide == []


REMINDER = f"<system-reminder>\nAs you answer, {'x' * 300}\n</system-reminder>"
FOLDED = "text: <system-reminder> As you answ…  # 352 characters: see Moontap-full"


@pytest.mark.parametrize(
    ("texts", "lines"),
    [
        ([REMINDER, "Go on."], [FOLDED, "text: |", "  Go on."]),
        ([f"{REMINDER}\n\nGo on."], [FOLDED, "text: |", "  Go on."]),
        ([f"Go on.\n{REMINDER}{REMINDER}"], ["text: |", "  Go on.", FOLDED, FOLDED]),
        (
            ["<system-reminder>Be brief.</system-reminder>\n"],
            ["text: <system-reminder>Be brief.</system-reminder>"],
        ),
        # One that nothing closes.
        (["<system-reminder>\nAs you answer" + "y" * 321], [FOLDED]),
        (["Say <system-reminder"], ["text: |", "  Say <system-reminder"]),
    ],
)
def test_what_a_person_has_typed_is_not_lost_among_reminders(
    texts: list[str], lines: list[str]
) -> None:
    blocks = [{"type": "text", "text": text} for text in texts]
    shown = messages([{"role": "user", "content": blocks}])
    page = request_page(shown).split("  message 0: user\n")[1].split("\n\n")[0].splitlines()
    assert page == ["    " + line for line in lines]
    full = "".join(request_page(shown, None).split())
    assert all("".join(text.split()) in full for text in texts)


def test_a_reminder_does_not_take_the_place_of_a_results_end() -> None:
    said = "line\n" * 100 + f"It failed.\n{REMINDER}"
    shown = messages([assistant(use("a")), user(result("a", said))])
    page = request_page(shown)
    assert "result: ok in message 1  # 863 characters: see Moontap-full\n" in page
    assert "\n        It failed.\n        <system-reminder> As you answer, xxx" in page
    assert page.count("x") < 80
    assert "x" * 60 in request_page(shown, None)


def test_what_is_hostile_is_harmless() -> None:
    evil = "\x1b[2J\x1b]0;x\x07\r\u202e<script>alert(1)</script>\x00"
    history = [
        {"role": evil, "content": evil},
        assistant({"type": evil, evil: evil}, use(evil, evil, **{evil: evil}), evil),
        user(result(evil, evil), result(f"{evil}!", [{"type": evil}])),
    ]
    ask = {"model": evil, evil: evil, "tools": [{"name": evil}], "system": evil}
    shown = messages(history * 2, ask, session=evil, agent=evil)
    for fold in (600, None):
        assert all(map(str.isprintable, request_page(shown, fold).split("\n")))


def _flows(path: Path) -> Iterator[http.HTTPFlow]:
    with path.open("rb") as file:
        yield from (one for one in FlowReader(file).stream() if isinstance(one, http.HTTPFlow))


def _steps(count: int, size: int) -> list[Any]:
    text = "a line of text\n" * (size // 15)
    return [
        one
        for n in range(count)
        for one in (assistant(use(f"Bash_{n % 7}")), user(result(f"Bash_{n % 7}", text)))
    ]


def _chat_steps(count: int, size: int) -> list[Any]:
    text = "a line of text\n" * (size // 15)
    return [
        one
        for n in range(count)
        for one in (calls((f"Bash:{n % 7}", "{}")), tool(f"Bash:{n % 7}", text))
    ]


@pytest.mark.parametrize(
    ("wire", "history"),
    [
        (ANTHROPIC, _steps(2000, 2500)),
        (OPENAI, _chat_steps(2000, 2500)),
        (ANTHROPIC, _steps(2, 2_600_000)),
        (OPENAI, _chat_steps(2, 2_600_000)),
        (ANTHROPIC, [user("x" * 10_000_000)]),
        (ANTHROPIC, [user("\x1b[2J\r" * 800_000)]),
        (OPENAI, [calls(("a", "[" * 500_000 + "]" * 500_000))]),
        (OPENAI, [calls(("a", '{"content":"' + "ab\\n" * 1_000_000))]),
        (ANTHROPIC, [assistant({**use("a"), "input": {f"k{n}": n for n in range(100_000)}})]),
        (ANTHROPIC, [user("<system-reminder>" * 200_000), user("go"), assistant("hm")]),
    ],
)
def test_a_large_request_is_quick(wire: Any, history: list[Any]) -> None:
    body = json.dumps({"messages": history}, ensure_ascii=False).encode()
    begun = time.process_time()
    shown = ShownRequest(wire, wire.read_request(body), body, len(body))
    page = request_page(shown)
    assert time.process_time() - begun < 1.0  # 0.1 s on a machine with nothing else to do
    assert all(map(str.isprintable, page.splitlines()))

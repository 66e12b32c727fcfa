from __future__ import annotations

import time
from collections.abc import Sequence

import pytest

from moontap.looking.views.events import events_page
from moontap.looking.views.page import WIDTH
from moontap.looking.views.shown import ShownStream
from moontap.wire.protocol import ANTHROPIC, OPENAI, Wire
from tests.samples import chat_events, dump, messages_events

HEAD = "   ms  bytes  event"


def data(**said: object) -> bytes:
    return b"data: %s\n\n" % dump(said)


def delta(index: int = 0, **said: object) -> bytes:
    return data(choices=[{"index": index, "delta": said}])


def text_delta(text: str) -> bytes:
    said = {"type": "text_delta", "text": text}
    body = dump({"type": "content_block_delta", "index": 0, "delta": said})
    return b"event: content_block_delta\ndata: %s\n\n" % body


def page_of(
    wire: Wire, events: Sequence[bytes], times: Sequence[float] = (), client: bytes | None = None
) -> list[str]:
    body = b"".join(events)
    chunks = [(len(one), at) for one, at in zip(events, times, strict=True)] if times else ()
    untimed = "" if times else "the tap did not record this"
    shown = ShownStream(wire, body if client is None else client, body, chunks, untimed)
    return events_page(shown).splitlines()


def rows_of(lines: list[str]) -> list[str]:
    """What the table says of events, without times and sizes, each in one line."""
    at = next(number for number, line in enumerate(lines) if line.endswith("  event"))
    rows: list[str] = []
    for line in lines[at + 1 :]:
        what = line[lines[at].index("event") :]
        if what.startswith("  "):
            rows[-1] += f" {what.strip()}"
        else:
            rows.append(what)
    return rows


def test_a_stream_with_its_times() -> None:
    events = messages_events("Bash_0")
    times = [12, 12, 30.4, 31, 40, 1250.6, 1251]
    client = b"".join(events).replace(b'"Bash_0"', b'"Bash_0_tq4k2xw7m3a"')
    sizes = [len(one) for one in events]
    whats = [
        "message_start id msg_a1",
        "ping",
        "content_block_start [0] tool_use Bash id Bash_0 -> Bash_0_tq4k2xw7m3a",
        'input_json_delta [0]  "{"command": "pwd"}"',
        "content_block_stop [0]",
        "… 1.2 s of silence",
        "message_delta stop_reason tool_use",
        "message_stop",
    ]
    lines = page_of(ANTHROPIC, events, times, client)
    assert lines[:2] == [f"events: 7, 7 chunks, 1.25 s, {sum(sizes)} bytes", HEAD]
    assert rows_of(lines) == whats
    counted = [line.split()[:2] for line in lines[2:] if line[:5].strip()]
    rounded = (12, 12, 30, 31, 40, 1251, 1251)
    assert counted == [[str(at), str(size)] for at, size in zip(rounded, sizes, strict=True)]
    assert f"{'':14}… 1.2 s of silence" == lines[-3]


def test_chat_completions_alike() -> None:
    events = chat_events("Bash:0", "Bash:1")
    client = b"".join(events).replace(b'"Bash:1"', b'"Bash_1_t3yrqkxww54"')
    lines = page_of(OPENAI, events, range(0, 70, 10), client)
    assert rows_of(lines) == [
        "role assistant, id cmpl-x1",
        "tool_calls[0] Bash id Bash:0",
        'tool_calls[0] arguments  "{"command": "pwd"}"',
        "tool_calls[1] Bash id Bash:1 -> Bash_1_t3yrqkxww54",
        'tool_calls[1] arguments  "{"command": "pwd"}"',
        "finish_reason tool_calls",
        "[DONE]",
    ]


@pytest.mark.parametrize(
    ("wire", "events", "rows"),
    [
        (
            ANTHROPIC,
            [text_delta("one "), text_delta("two "), text_delta("three")],
            ['text_delta ×3 [0]  "one two three"'],
        ),
        (
            ANTHROPIC,
            [text_delta(f"word{n:03} ") for n in range(100)],
            ['text_delta ×100 [0]  "word000 word001 word002 … 098 word099 "'],
        ),
        (
            ANTHROPIC,
            [text_delta("a"), b'event: ping\ndata: {"type":"ping"}\n\n', text_delta("b")],
            ['text_delta [0]  "a"', "ping", 'text_delta [0]  "b"'],
        ),
        (ANTHROPIC, [data(type="ping")] * 3, ["ping ×3"]),
        (ANTHROPIC, [b": keep-alive\n\n"] * 2, ['comment "keep-alive" ×2']),
        (
            ANTHROPIC,
            [data(type="vendor_notice", a=1)],
            ['unknown vendor_notice  "{"type":"vendor_notice","a":1}"'],
        ),
        (ANTHROPIC, [data(a=1)], ['unknown null  "{"a":1}"']),
        (
            ANTHROPIC,
            [data(type="error", error={"type": "overloaded_error", "message": "Over\nloaded"})],
            ['error overloaded_error "Over loaded"'],
        ),
        (
            ANTHROPIC,
            [
                data(
                    type="message_start",
                    message={
                        "id": "m",
                        "model": "kimi-k3",
                        "usage": {"input_tokens": 9},
                        "content": [
                            {"type": "tool_use", "id": "a", "name": "B", "input": {"a": 1}}
                        ],
                    },
                )
            ],
            ['message_start kimi-k3, tool_use B id a input "{"a":1}", 9 in, id m'],
        ),
        (
            ANTHROPIC,
            [b'event: message_stop\ndata: {"type":"ping"}\n\n'],
            ["ping  # event: message_stop"],
        ),
        (ANTHROPIC, [b": x\n" + data(type="ping")], ["ping  # with a comment"]),
        (ANTHROPIC, [b"retry: 3000\n\n"], ['event without data "retry: 3000"']),
        (
            ANTHROPIC,
            [data(type="content_block_delta", index=None, delta={"type": "x_delta", "x": 1})],
            ['content_block_delta [null] {"type":"x_delta","x":1}'],
        ),
        (OPENAI, [b"data: {broken\n\n"], ['no JSON object  "{broken"']),
        (OPENAI, [b"data: [1]\n\n"] * 2, ['no JSON object ×2  "[1][1]"']),
        (OPENAI, [b"data: \xff\n\n"], ['no JSON object  "\\xff"']),
        (OPENAI, [b"data: {bro"], ['no JSON object  "{bro"  # unfinished']),
        (OPENAI, [b"data: [DONE]"], ["[DONE]  # unfinished"]),
        # Lines that a strict reader takes as one event.
        (
            OPENAI,
            [b'data: {"error":{"message":"no"}}\ndata: [DONE]\n\n'],
            ['error "no"', "[DONE]"],
        ),
        (OPENAI, [delta(content="a"), delta(content="b")], ['content ×2  "ab"']),
        (
            OPENAI,
            [delta(content="a"), delta(1, content="b")],
            ['content  "a"', 'choice 1: content  "b"'],
        ),
        (OPENAI, [delta(reasoning_content="a")] * 2, ['reasoning_content ×2  "aa"']),
        (
            OPENAI,
            [delta(tool_calls=[{"id": None, "function": {"name": "B", "arguments": "{}"}}])],
            ['tool_calls[-] B id null arguments  "{}"'],
        ),
        (
            OPENAI,
            [delta(tool_calls=[{"index": 0, "id": "", "function": {"arguments": "{"}}])] * 2,
            ['tool_calls[0] id "" arguments ×2  "{{"'],
        ),
        (
            OPENAI,
            [data(choices=[], usage={"prompt_tokens": 9, "completion_tokens": 4})],
            ["usage 9 in, 4 out"],
        ),
        (
            OPENAI,
            [
                data(
                    id="c",
                    model="kimi-k3",
                    choices=[
                        {
                            "delta": {
                                "role": "assistant",
                                "content": "Hi",
                                "function_call": {"a": 1},
                            },
                            "finish_reason": "stop",
                            "usage": {"completion_tokens": 4},
                        }
                    ],
                )
            ],
            [
                'role assistant, content "Hi", function_call "{"a":1}", finish_reason stop, '
                "usage 4 out, kimi-k3, id c"
            ],
        ),
        (OPENAI, [delta()], ["chunk without content"]),
        (OPENAI, [data(x=1)], ['unknown {"x":1}']),
        (OPENAI, [b"\n\n\n"], []),
    ],
)
def test_events_are_told_in_short(wire: Wire, events: list[bytes], rows: list[str]) -> None:
    assert rows_of(page_of(wire, events)) == rows


def test_no_line_is_wider_than_a_pane_and_no_id_is_broken() -> None:
    """Ids of uuids, and one that changed on each fragment of its call."""
    ids = [f"chatcmpl-tool-{n}a2b3c4d-5e6f-7a8b-9c0d-1e2f3a4b5c6d" for n in range(3)]
    calls = [{"index": 0, "id": id_, "function": {"arguments": "{}" * 50}} for id_ in ids]
    events = [delta(tool_calls=[one]) for one in calls]
    client = b"".join(events)
    for id_ in ids:
        client = client.replace(id_.encode(), b"Bash_0_tq4k2xw7m3a")
    lines = page_of(OPENAI, events, range(3), client)
    pairs = [f"id {id_} -> Bash_0_tq4k2xw7m3a" for id_ in ids]
    assert [line.strip() for line in lines if "->" in line] == pairs
    assert all(len(line) <= WIDTH for line in lines if "->" not in line)


def test_a_run_ends_where_it_pauses() -> None:
    times = [10, 20, 900, 3200, 3300]
    lines = page_of(ANTHROPIC, [text_delta("ab")] * 5, times)
    size = len(text_delta("ab"))
    assert lines[2:] == [
        f'   10-900  {3 * size:>5}  text_delta ×3 [0]  "ababab"',
        "                  … 2.3 s of silence",
        f'3200-3300  {2 * size:>5}  text_delta ×2 [0]  "abab"',
    ]


def test_the_time_is_that_of_the_chunk_with_the_last_byte() -> None:
    one, two = data(type="ping"), data(type="message_stop")
    body = one + two
    cut = len(one) - 1  # all but the newline that ends the event
    chunks = [(cut, 5.0), (1, 80.0), (len(two), 90.0)]
    lines = events_page(ShownStream(ANTHROPIC, body, body, chunks)).splitlines()
    assert [line.split()[0] for line in lines[-2:]] == ["80", "90"]
    assert lines[0] == f"events: 2, 3 chunks, 0.09 s, {len(body)} bytes"


def test_without_times_it_says_why() -> None:
    lines = page_of(OPENAI, chat_events())
    assert lines[1] == "note: no times: the tap did not record this"
    assert all(line.startswith("    -  ") for line in lines[3:])


@pytest.mark.parametrize(
    ("wire", "last", "ended"),
    [
        (ANTHROPIC, data(type="message_stop"), True),
        (ANTHROPIC, text_delta('I wait for "message_stop" or [DONE]'), False),
        (OPENAI, b"data: [DONE]\n\n", True),
        (OPENAI, delta(content='"message_stop" [DONE]'), False),
    ],
)
def test_what_breaks_off_after_its_end_is_whole(wire: Wire, last: bytes, ended: bool) -> None:
    shown = ShownStream(wire, last, last, cut=True)
    assert ("broke off" not in events_page(shown).partition("\n")[0]) is ended


@pytest.mark.parametrize(
    ("live", "cut", "head", "last"),
    [
        (True, False, "still coming", "# still coming"),
        (False, True, "broke off", "# unfinished"),
    ],
)
def test_an_unfinished_stream_says_so(live: bool, cut: bool, head: str, last: str) -> None:
    body = data(type="ping") + b'data: {"type":"mess'
    lines = events_page(ShownStream(ANTHROPIC, body, body, (), "", live, cut)).splitlines()
    assert lines[0].endswith(f", {head}")
    assert lines[-1].endswith(last)


def test_it_says_where_the_client_got_fewer() -> None:
    events = chat_events("Bash:0")
    lines = page_of(OPENAI, events, range(5), b"".join(events[:3]))
    assert lines[1] == "note: the client got 3 of them"


def test_event_lines_that_are_not_there_are_said_once() -> None:
    lines = page_of(ANTHROPIC, [data(type="ping")] * 12, range(12))
    assert lines[1:] == ["note: 12 of them have no event line", HEAD, lines[3]]
    assert page_of(OPENAI, chat_events(), range(3))[1] == HEAD


@pytest.mark.parametrize(
    "evil", ["\x1b[2J", "\x00", "\x9b", "\u202e", "\u2028", "\r", "\ud800"], ids=ascii
)
@pytest.mark.parametrize("wire", [ANTHROPIC, OPENAI], ids=["messages", "chat"])
def test_whatever_is_hostile_stands_as_an_escape(evil: str, wire: Wire) -> None:
    raw = evil.encode("utf-8", "surrogatepass")
    call = {"id": evil, "index": evil, "function": {"name": evil, "arguments": evil}}
    page = page_of(
        wire,
        [
            text_delta(evil) if evil != "\ud800" else b"",
            data(type="x", evil=ascii(evil)),
            b'data: {"type":"%s"}\n\n' % raw,
            b"event: %s\ndata: {}\n\n" % raw,
            b": %s\n\n" % raw,
            b"data: %s\n\n" % raw,
        ]
        + ([] if evil == "\ud800" else [delta(tool_calls=[call], content=evil)]),
    )
    assert all(line.isprintable() for line in page)


@pytest.mark.parametrize(
    ("wire", "events"),
    [
        (ANTHROPIC, [text_delta("a")] * 20_000),
        (OPENAI, [delta(content="a"), delta(reasoning_content="b")] * 5_000),
        (OPENAI, [delta(content="a" * 10_000_000)]),
    ],
    ids=["alike", "two kinds", "one line"],
)
def test_very_many_events_show_soon(wire: Wire, events: list[bytes]) -> None:
    body = b"".join(events)
    chunks = [(len(one), float(at)) for at, one in enumerate(events)]
    begun = time.process_time()
    events_page(ShownStream(wire, body, body, chunks))
    assert time.process_time() - begun < 1.5

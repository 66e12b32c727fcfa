"""Streams whose bytes are framed in every way that was seen: lines, separators, chunks, codings."""

from collections.abc import Callable

from moontap.standin import Fault, FaultKind
from scripts.flows_lib import shapes
from scripts.flows_lib.agent import CHAT, MESSAGES
from scripts.flows_lib.recipes.plays import ROUNDS, faulty, runs, standin, streamed
from scripts.flows_lib.scene import Recipe
from tests.upstreams import Reply

type Framing = Callable[[list[bytes]], list[bytes]]

# U+2028 ends a line for a careless reader, and an emoji has four bytes to be cut in.
ODD_TEXT = "one\u2028two 🌙 drei\u0085vier"


def _messages(number: int, *commands: str) -> list[bytes]:
    blocks = [shapes.tool_block(at + 1, f"Bash_{at}", one) for at, one in enumerate(commands)]
    return shapes.message(number, shapes.text_block(0, ODD_TEXT), *blocks)


def _chat(number: int, command: str) -> list[bytes]:
    call = shapes.chat_call(number, 0, "Bash:0", command)
    return shapes.chat(number, shapes.delta(number, content=ODD_TEXT), *call)


def _several_lines(event: bytes) -> bytes:
    """An event whose JSON is spread over data lines, one of them empty, cut around the id."""
    if b"tool_calls" not in event or b'"id":"Bash' not in event:
        return event
    text = event.removeprefix(b"data: ").removesuffix(b"\n\n")
    left, right = text.split(b'"tool_calls":', 1)
    middle, rest = right.split(b'"type"', 1)
    lines = [left + b'"tool_calls":', middle, b"", b'"type"' + rest]
    return b"".join(b"data: %s\n" % line for line in lines) + b"id: 7\nretry: 100\n\n"


def _keep_alive(events: list[bytes]) -> list[bytes]:
    """Comments before, between and within events, pings, events and fields that nobody knows."""
    noise = [
        b": OPENROUTER PROCESSING\n\n",
        shapes.event("ping", {"type": "ping"}),
        b":\n\n",
        shapes.event("vendor_notice", {"type": "vendor_notice", "id": "Bash_0", "note": "none"}),
        b"\n\n",
    ]
    out = []
    for number, event in enumerate(events):
        out += [noise[number % len(noise)], event.replace(b"\ndata:", b"\n: within\ndata:", 1)]
    return out


def _unnamed(events: list[bytes]) -> list[bytes]:
    return [b"data:" + event.partition(b"data:")[2] for event in events]


def _no_space(events: list[bytes]) -> list[bytes]:
    return [event.replace(b"event: ", b"event:").replace(b"data: ", b"data:") for event in events]


def _carriage_returns(events: list[bytes]) -> list[bytes]:
    return [event.replace(b"\n", b"\r") for event in events]


def _torn(events: list[bytes]) -> list[bytes]:
    """CRLF, with the cut always between the two."""
    pieces = b"".join(shapes.crlf(events)).split(b"\r\n")
    return [pieces[0] + b"\r", *(b"\n" + piece + b"\r" for piece in pieces[1:-1]), b"\n"]


def _unended(events: list[bytes]) -> list[bytes]:
    """The last event lacks its separator, and holds the call."""
    whole = [event for event in events if b"content_block_stop" not in event][:-2]
    kept = [event for event in whole if b"input_json_delta" not in event]
    return [*kept[:-1], kept[-1].rstrip(b"\n")]


def _two(one: list[bytes], other: list[bytes], last: list[bytes]) -> tuple[Reply, ...]:
    """Two rounds framed so, and the end as usual."""
    return (streamed(one), streamed(other, 2), streamed(last, 3))


MESSAGES_TWO = (_messages(1, "pwd", "ls"), _messages(2, "pwd"))
CHAT_TWO = (_chat(1, "pwd"), _chat(2, "ls"))


def _both_messages(how: Framing) -> tuple[Reply, ...]:
    return _two(how(MESSAGES_TWO[0]), how(MESSAGES_TWO[1]), shapes.said(3))


def _both_chat(how: Framing) -> tuple[Reply, ...]:
    return _two(how(CHAT_TWO[0]), how(CHAT_TWO[1]), shapes.chat_said(3))


RECIPES = {
    "framing-crlf": Recipe(_both_messages(shapes.crlf), runs(MESSAGES)),
    "framing-crlf-chat": Recipe(standin(faulty(FaultKind.CRLF, rounds=ROUNDS)), runs(CHAT)),
    "framing-crlf-torn": Recipe(
        _both_chat(lambda events: _torn([_several_lines(event) for event in events])), runs(CHAT)
    ),
    "framing-carriage-returns": Recipe(_both_chat(_carriage_returns), runs(CHAT)),
    "framing-comments": Recipe(_both_messages(_keep_alive), runs(MESSAGES)),
    "framing-comments-chat": Recipe(standin(faulty(FaultKind.COMMENTS, rounds=ROUNDS)), runs(CHAT)),
    "framing-data-without-space": Recipe(_both_messages(_no_space), runs(MESSAGES)),
    "framing-data-without-space-chat": Recipe(
        standin(faulty(FaultKind.DATA_NO_SPACE, rounds=ROUNDS)), runs(CHAT)
    ),
    "framing-no-event-lines": Recipe(_both_messages(_unnamed), runs(MESSAGES)),
    "framing-several-data-lines": Recipe(
        _both_chat(lambda events: [_several_lines(event) for event in events]), runs(CHAT)
    ),
    "framing-space-separator": Recipe(
        standin(faulty(FaultKind.SPACE_SEPARATOR, rounds=ROUNDS)), runs(CHAT)
    ),
    "framing-chunk-cuts": Recipe(
        _both_messages(lambda events: shapes.cut(events, 1, 2, 3, 5, 7, 11, 13, 17, 19, 23)),
        runs(MESSAGES),
    ),
    "framing-chunk-cuts-chat": Recipe(
        _both_chat(lambda events: shapes.cut(events, 31, 3, 1, 64)), runs(CHAT)
    ),
    "framing-one-chunk": Recipe(
        _both_chat(lambda events: [b"\xef\xbb\xbf" + b"".join(events)]), runs(CHAT)
    ),
    "framing-no-last-separator": Recipe(
        _two(_unended(MESSAGES_TWO[0]), _unended(MESSAGES_TWO[1]), shapes.said(3)), runs(MESSAGES)
    ),
    "encoding-gzip": Recipe(
        standin(faulty(Fault(FaultKind.ENCODING, encoding="gzip"), rounds=ROUNDS)), runs(MESSAGES)
    ),
    "encoding-gzip-unnamed": Recipe(
        standin(faulty(Fault(FaultKind.ENCODING, encoding="gzip", header=False), rounds=ROUNDS)),
        runs(CHAT),
    ),
    "encoding-br": Recipe(
        standin(faulty(Fault(FaultKind.ENCODING, encoding="br"), rounds=ROUNDS)), runs(CHAT)
    ),
    "encoding-zstd": Recipe(
        standin(faulty(Fault(FaultKind.ENCODING, encoding="zstd"), rounds=ROUNDS)), runs(MESSAGES)
    ),
    "encoding-zstd-whole": Recipe(
        standin(faulty(Fault(FaultKind.ENCODING, encoding="zstd"), rounds=ROUNDS)),
        runs(MESSAGES, stream=False),
    ),
    "encoding-br-looked-on": Recipe(
        standin(faulty(Fault(FaultKind.ENCODING, encoding="br"), rounds=ROUNDS)), runs(MESSAGES)
    ),
}

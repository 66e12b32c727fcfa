r"""Streamed replies of both protocols, regular and odd, that several tables share.

A stream is written as bytes in which the id of each call stands in marks, `<<A|pwd_0>>`: the
letter tells the calls apart, so a table says by itself where ids stand and which belong together.
What looks like an id and is not one of a call stands without marks.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from moontap.wire.protocol import ANTHROPIC, OPENAI, Wire

_MARK = re.compile(rb"<<(\w+)\|(.*?)>>", re.DOTALL)
_STRING_BODY = re.compile(rb'(?:[^"\\]|\\.)*+', re.DOTALL)


@dataclass(frozen=True)
class Stream:
    """marked: the stream with its marks. again: the calls whose id this reply used before."""

    name: str
    wire: Wire
    marked: bytes
    again: str = ""
    body: bytes = field(init=False)
    labels: tuple[str, ...] = field(init=False)
    spelled: tuple[bytes, ...] = field(init=False)

    def __post_init__(self) -> None:
        marks = list(_MARK.finditer(self.marked))
        object.__setattr__(self, "body", _MARK.sub(lambda m: m[2], self.marked))
        object.__setattr__(self, "labels", tuple(m[1].decode() for m in marks))
        object.__setattr__(self, "spelled", tuple(m[2] for m in marks))

    @property
    def ids(self) -> set[str]:
        return {json.loads(b'"' + spelled + b'"') for spelled in self.spelled}

    def ids_in(self, output: bytes) -> dict[str, list[bytes]]:
        """What stands at the marks of an output, by call; the rest must be as in the body."""
        first, *parts = _MARK.split(self.marked)[::3]
        assert output.startswith(first), "more than ids differs"
        at = len(first)
        given: dict[str, list[bytes]] = {}
        for label, part in zip(self.labels, parts, strict=True):
            text = _STRING_BODY.match(output, at)
            assert text, "an id is missing"
            assert output.startswith(part, text.end()), f"more than ids differs, from byte {at} on"
            at = text.end() + len(part)
            given.setdefault(label, []).append(text[0])
        assert at == len(output), "more came out"
        return given

    def spelled_by(self, label: str) -> list[bytes]:
        pairs = zip(self.labels, self.spelled, strict=True)
        return [spelled for mine, spelled in pairs if mine == label]


def cuts(body: bytes) -> Iterator[list[bytes]]:
    """The ways in which a stream may arrive: whole, byte by byte, in two, at random."""
    yield from ([body[:at], body[at:]] for at in range(1, len(body)))
    yield from few_cuts(body)


def few_cuts(body: bytes) -> Iterator[list[bytes]]:
    """The same without every place to cut it in two."""
    yield [body]
    yield [body[at : at + 1] for at in range(len(body))]
    yield from random_cuts(body)


def random_cuts(body: bytes, times: int = 5) -> Iterator[list[bytes]]:
    dice = random.Random(len(body))
    for _ in range(times):
        ends = sorted(dice.randrange(len(body) + 1) for _ in range(dice.randint(2, 12)))
        starts = [0, *ends]
        yield [body[a:b] for a, b in zip(starts, [*ends, len(body)], strict=True)]


def event(name: str, data: bytes) -> bytes:
    return b"event: " + name.encode() + b"\ndata: " + data + b"\n\n"


def start(message: bytes = b'"id":"msg_a1"') -> bytes:
    text = b'{"type":"message_start","message":{' + message + b',"role":"assistant","content":[]}}'
    return event("message_start", text)


def block(index: int, call: bytes, name: str = "pwd") -> bytes:
    """A tool call of a Messages stream, whole."""
    at = b"%d" % index
    return (
        event(
            "content_block_start",
            b'{"type":"content_block_start","index":%s,"content_block":{"type":"tool_use","id":"%s"'
            b',"name":"%s","input":{}}}' % (at, call, name.encode()),
        )
        + event(
            "content_block_delta",
            b'{"type":"content_block_delta","index":%s,"delta":{"type":"input_json_delta",'
            b'"partial_json":"{\\"a\\":1}"}}' % at,
        )
        + event("content_block_stop", b'{"type":"content_block_stop","index":%s}' % at)
    )


END = event(
    "message_delta",
    b'{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}',
) + event("message_stop", b'{"type":"message_stop"}')

_PLAIN = start() + block(1, b"<<A|pwd_0>>") + END


def starts(content: bytes, index: bytes = b'"index":0,') -> bytes:
    """A `content_block_start` alone, its block as given."""
    text = b'{"type":"content_block_start",' + index + b'"content_block":{' + content + b"}}"
    return event("content_block_start", text)


def _messages(name: str, marked: bytes, again: str = "") -> Stream:
    return Stream(f"messages: {name}", ANTHROPIC, marked, again)


MESSAGES = [
    _messages("plain", _PLAIN),
    _messages("empty", b""),
    _messages(
        "ping anywhere",
        start() + event("ping", b'{"type":"ping"}') + block(0, b"<<A|pwd_0>>") + b": keep\n\n",
    ),
    _messages(
        "parallel calls with one id",
        start() + block(0, b"<<A|Bash_0>>", "Bash") + block(1, b"<<B|Bash_0>>", "Bash") + END,
        again="B",
    ),
    _messages("no space after the colon", _PLAIN.replace(b": ", b":")),
    _messages("crlf", _PLAIN.replace(b"\n", b"\r\n")),
    _messages("cr", _PLAIN.replace(b"\n", b"\r")),
    _messages(
        "newlines of all kinds", _PLAIN.replace(b"}\n\n", b"}\r\n\r").replace(b"t\n", b"t\r")
    ),
    _messages("comments", _PLAIN.replace(b"data:", b": tool_use <b>\n:\ndata:")),
    _messages("no event line", re.sub(rb"event: \w+\n", b"", _PLAIN)),
    _messages("event line last", re.sub(rb"(event: \w+\n)(data:.*\n)", rb"\2\1", _PLAIN)),
    _messages("byte order mark", b"\xef\xbb\xbf" + _PLAIN),
    _messages(
        "mark, then an event that cannot hold an id", b"\xef\xbb\xbf" + block(0, b"<<A|x_0>>")
    ),
    _messages(
        "mark before an event that says it cannot hold an id",
        b"\xef\xbb\xbf"
        + starts(b'"type":"tool_use","id":"<<A|x_0>>"').replace(b"start\n", b"delta\n"),
    ),
    _messages(
        "several data lines",
        start()
        + b'data: {"type":"content_block_start",\ndata:"index":0,"content_block":\ndata:\n'
        + b': between\ndata: {"type":"tool_use","id":"<<A|pwd_0>>","name":"pwd"}}\n\n'
        + END,
    ),
    _messages(
        "separators with spaces", _PLAIN.replace(b"\n\n", b"\n \n").replace(b'p"}\n ', b'p"}\n\t')
    ),
    _messages("no blank line at the end", _PLAIN.rstrip(b"\n") + b"\n"),
    _messages(
        "no newline at the end", start() + starts(b'"type":"tool_use","id":"<<A|pwd_0>>"')[:-2]
    ),
    _messages("cut within an id", (start() + starts(b'"type":"tool_use","id":"pwd_0"'))[:-8]),
    _messages("cut behind an id", (start() + starts(b'"type":"tool_use","id":"pwd_0","x":1'))[:-8]),
    _messages(
        "two stops for a block",
        _PLAIN + event("content_block_stop", b'{"type":"content_block_stop","index":1}'),
    ),
    _messages(
        "restarts",
        (start() + block(0, b"<<A|pwd_0>>")) + (start() + block(0, b"<<B|pwd_0>>")) + start() + END,
        again="B",
    ),
    _messages("starts at one index", start() + block(0, b"<<A|a_0>>") + block(0, b"<<B|b_0>>")),
    _messages(
        "starts at one index with one id",
        start() + block(0, b"<<A|pwd_0>>") + block(0, b"<<B|pwd_0>>") + block(0, b"<<C|pwd_0>>"),
        again="BC",
    ),
    _messages(
        "no index",
        start()
        + starts(b'"type":"tool_use","id":"<<A|pwd_0>>"', b"")
        + starts(b'"type":"tool_use","id":"<<B|pwd_0>>"', b""),
        again="B",
    ),
    _messages(
        "an index that is no number",
        start() + starts(b'"type":"tool_use","id":"<<A|x>>"', b'"index":"a",'),
    ),
    _messages(
        "a huge index",
        start() + starts(b'"type":"tool_use","id":"<<A|x>>"', b'"index":%d,' % 10**40),
    ),
    _messages(
        "text delta in a tool block",
        _PLAIN.replace(b'input_json_delta","partial_json"', b'text_delta","text"'),
    ),
    _messages(
        "whole input in the start",
        start()
        + starts(b'"type":"tool_use","id":"<<A|pwd_0>>","input":{"type":"tool_use","id":"pwd_0"}'),
    ),
    _messages(
        "error in the middle",
        start()
        + block(0, b"<<A|pwd_0>>")
        + event("error", b'{"type":"error","error":{"type":"x","message":"tool_use"}}'),
    ),
    _messages(
        "unknown events and fields",
        event("surprise", b'{"type":"surprise","content_block":{"type":"tool_use","id":"pwd_0"}}')
        + start(b'"new":{"id":"a"},"id":"msg_a1"')
        + starts(
            b'"new":[{"id":"pwd_0"}],"type":"tool_use","caller":{"id":"b"},"id":"<<A|pwd_0>>"'
        ),
    ),
    _messages(
        "message start with content",
        event(
            "message_start",
            b'{"type":"message_start","message":{"id":"m",'
            b'"content":[{"type":"text","text":"tool_use"},'
            b'{"type":"tool_use","id":"<<A|pwd_0>>"},{"id":"<<B|pwd_0>>","type":"tool_use"}]}}',
        ),
        again="B",
    ),
    *(
        _messages(f"message id {shown}", start(message) + block(0, b"<<A|pwd_0>>"))
        for shown, message in (
            ("missing", b'"x":1'),
            ("null", b'"id":null'),
            ("empty", b'"id":""'),
            ("a number", b'"id":7'),
            ("chatcmpl", b'"id":"chatcmpl-0d9f"'),
        )
    ),
    _messages("no message start", block(0, b"<<A|pwd_0>>")),
    _messages(
        "events without a separator",
        b"event: message_start\n"
        b'data: {"type":"message_start","message":{"id":"m"}}\n'
        b"event: content_block_start\n"
        b'data: {"type":"content_block_start","index":0,'
        b'"content_block":{"type":"tool_use","id":"<<A|a_0>>"}}\n'
        b'data: {"type":"content_block_start","index":1,'
        b'"content_block":{"type":"tool_use","id":"<<B|a_0>>"}}\n\n',
        again="B",
    ),
    _messages(
        "white space in the JSON", starts(b' "type" :\t"tool_use" , "id"  : "<<A|pwd_0>>" ') + END
    ),
    _messages(
        "not JSON",
        b"data: tool_use\n\ndata: [DONE]\n\n"
        b"data: {\"tool_use\n\ndata: {'id':'pwd_0','type':'tool_use'}\n\n"
        b'data: {"type":"content_block_start" "tool_use"}\n\n'
        b'data: {"a":[}],"tool_use":]\n\ndata: "tool_use"\n\n'
        b'data: {tool_use}\n\ndata: {"tool_use"}\n\ndata: {"tool_use":}\n\n'
        + block(0, b"<<A|pwd_0>>"),
    ),
    _messages(
        "fields of the framing",
        b"id: pwd_0\nretry: 10\ndata\ndata:\n\nid:pwd_0\n"
        + block(0, b"<<A|pwd_0>>")
        + b"dataset: {}\nid\n\n",
    ),
    _messages(
        "a key twice",
        starts(b'"id":"first_0","type":"text","type":"tool_use","id":"<<A|pwd_0>>"').replace(
            b'"content_block":',
            b'"content_block":{"type":"tool_use","id":"pwd_0"},"content_block":',
        ),
    ),
    _messages(
        "escapes",
        starts(rb'"type":"tool_use","\u0069d":"<<A|pwd\u005f0>>"')
        + starts(rb'"type":"tool_use","id":"<<B|a\"b\\\/\n>>"', b'"index":1,'),
    ),
    _messages(
        "an escaped type is not seen",
        start() + starts(rb'"type":"tool\u005fuse","id":"pwd_0"'),
    ),
    _messages(
        "huge numbers",
        starts(b'"type":"tool_use","n":%d,"m":-1.5e999,"id":"<<A|pwd_0>>"' % 10**400),
    ),
    _messages(
        "lone surrogates",
        starts(rb'"x":"\ud83d","type":"tool_use","id":"<<A|pwd_0>>","y":"\udc00"'),
    ),
    _messages(
        "a lone surrogate in an id",
        starts(rb'"type":"tool_use","id":"pwd\ud83d"') + block(1, b"<<A|pwd_0>>"),
    ),
    _messages("invalid UTF-8", starts(b'"x":"\xff\xc3","type":"tool_use","id":"<<A|pwd_0>>"')),
    _messages(
        "invalid UTF-8 in an id",
        starts(b'"type":"tool_use","id":"pwd\xff"') + block(1, b"<<A|pwd_0>>"),
    ),
    _messages(
        "control characters", starts(b'"type":"tool_use","id":"<<A|pwd_0>>","x":"\x00\x0b\x0c"')
    ),
    *(
        _messages(f"id {shown}", start() + starts(b'"type":"tool_use","id":' + value) + END)
        for shown, value in (
            ("empty", b'""'),
            ("null", b"null"),
            ("a number", b"0"),
            ("an object", b'{"id":"pwd_0"}'),
            ("undefined", b'"<<A|undefined>>"'),
            ("zero", b'"<<A|0>>"'),
        )
    ),
    _messages("no id", start() + starts(b'"type":"tool_use","name":"pwd"')),
    _messages(
        "not a call",
        start()
        + starts(b'"type":"server_tool_use","id":"pwd_0","name":"web_search"')
        + starts(
            b'"type":"web_search_tool_result",'
            b'"tool_use_id":"pwd_0","content":[{"type":"tool_use","id":"pwd_0"}]'
        )
        + starts(
            b'"type":"text","text":"{\\"type\\":\\"tool_use\\",\\"id\\":\\"pwd_0\\"}","id":"pwd_0"'
        )
        + starts(b'"type":7,"id":"tool_use"')
        + event(
            "content_block_delta",
            b'{"type":"content_block_delta","index":0,"delta":{"type":"tool_use","id":"pwd_0"}}',
        )
        + END,
    ),
    _messages(
        "an id where the event says there is none",
        event(
            "content_block_delta",
            b'{"type":"content_block_start","index":0,'
            b'"content_block":{"type":"tool_use","id":"pwd_0"}}',
        )
        + block(0, b"<<A|pwd_0>>"),
    ),
    _messages("HTML", b"<html>\n<body>tool_use\n\n504 Gateway Time-out</body>\n</html>\n"),
    _messages("a whole reply", b'{"type":"message","content":[{"type":"tool_use","id":"pwd_0"}]}'),
]


def chunk(delta: bytes, more: bytes = b"", top: bytes = b'"id":"cmpl-x1",') -> bytes:
    return b'data: {%s"choices":[{"index":0,"delta":{%s}%s}]}\n\n' % (top, delta, more)


def tool_calls(*entries: bytes, top: bytes = b'"id":"cmpl-x1",') -> bytes:
    return chunk(b'"tool_calls":[%s]' % b",".join(b"{%s}" % entry for entry in entries), top=top)


def opens(index: int | None, call: bytes, name: str = "get_weather") -> bytes:
    at = b"" if index is None else b'"index":%d,' % index
    return b'%s"id":"%s","type":"function","function":{"name":"%s","arguments":""}' % (
        at,
        call,
        name.encode(),
    )


def goes_on(index: int | None, text: bytes = b'{\\"c\\":1}', more: bytes = b"") -> bytes:
    at = b"" if index is None else b'"index":%d,' % index
    return at + more + b'"function":{"arguments":"%s"}' % text


_ROLE = chunk(b'"role":"assistant","content":""', b',"finish_reason":null')
_STOP = chunk(
    b"", b',"finish_reason":"tool_calls","usage":{"prompt_tokens":9,"completion_tokens":4}'
)
DONE = b"data: [DONE]\n\n"
_SIMPLE = (
    _ROLE + tool_calls(opens(0, b"<<A|get_weather:0>>")) + tool_calls(goes_on(0)) + _STOP + DONE
)


def _chat(name: str, marked: bytes, again: str = "") -> Stream:
    return Stream(f"chat: {name}", OPENAI, marked, again)


CHAT = [
    _chat("plain", _SIMPLE),
    _chat("empty", b""),
    _chat("no space after the colon", _SIMPLE.replace(b"data: ", b"data:")),
    _chat("crlf", _SIMPLE.replace(b"\n", b"\r\n")),
    _chat("cr", _SIMPLE.replace(b"\n", b"\r")),
    _chat("comments", _SIMPLE.replace(b"data:", b': OPENROUTER "tool_calls"\n\ndata:')),
    _chat("byte order mark", b"\xef\xbb\xbf" + _SIMPLE),
    _chat("separators with spaces", _SIMPLE.replace(b"\n\n", b"\n \n")),
    _chat("separators that separate nothing", _SIMPLE.replace(b"\n\n", b"\n")),
    _chat("no newline at the end", tool_calls(opens(0, b"<<A|get_weather:0>>"))[:-2]),
    _chat("cut within an id", tool_calls(opens(0, b"get_weather:0"))[:48]),
    _chat("cut behind an id", tool_calls(opens(0, b"get_weather:0"))[:-6]),
    _chat(
        "pretty-printed over data lines",
        b'data: {\ndata:   "id": "cmpl-x1",\ndata:   "choices": [{"delta": {"tool_calls": [\n'
        b'data:     {"index": 0, "id": "<<A|a:0>>"},\ndata:     {"index": 1, "id": "<<B|a:0>>"}\n'
        b"data:   ]}}]\ndata: }\n\n",
        again="B",
    ),
    _chat(
        "parallel calls with one id",
        tool_calls(opens(0, b"<<A|Bash:0>>"), opens(1, b"<<B|Bash:0>>")) + _STOP + DONE,
        again="B",
    ),
    _chat(
        "interleaved",
        tool_calls(opens(1, b"<<A|Bash:1>>"))
        + tool_calls(opens(0, b"<<B|Bash:0>>"), goes_on(1))
        + tool_calls(goes_on(0), goes_on(1, more=b'"id":"<<A|Bash:1>>",')),
    ),
    _chat(
        "late id, arguments first",
        tool_calls(goes_on(0))
        + tool_calls(b'"index":0,"function":{"name":"x"}')
        + tool_calls(b'"index":0,"id":"<<A|x:0>>"')
        + tool_calls(goes_on(0)),
    ),
    _chat(
        "id repeated",
        tool_calls(opens(0, b"<<A|x:0>>")) + tool_calls(goes_on(0, more=b'"id":"<<A|x:0>>",')) * 2,
    ),
    _chat(
        "a new id on every fragment",
        tool_calls(opens(0, b"<<A|x:0>>"))
        + tool_calls(goes_on(0, more=b'"id":"<<A|x:1>>",'))
        + tool_calls(goes_on(0, more=b'"id":"<<A|x:2>>",')),
    ),
    _chat(
        "null and empty on continuations",
        tool_calls(opens(0, b"<<A|x:0>>"))
        + tool_calls(goes_on(0, more=b'"id":null,'))
        + tool_calls(goes_on(0, more=b'"id":"",')),
    ),
    _chat(
        "empty first",
        tool_calls(opens(0, b"")) + tool_calls(goes_on(0, more=b'"id":"<<A|x:0>>",')),
    ),
    *(
        _chat(f"id {shown}", tool_calls(b'"index":0,"id":' + value) + DONE)
        for shown, value in (
            ("empty", b'""'),
            ("null", b"null"),
            ("a number", b"0"),
            ("an object", b'{"id":"x:0"}'),
            ("undefined", b'"<<A|undefined>>"'),
            ("zero", b'"<<A|0>>"'),
        )
    ),
    _chat(
        "no index, one call", tool_calls(opens(None, b"<<A|x:0>>")) + tool_calls(goes_on(None)) * 2
    ),
    _chat(
        "no index, two ids",
        tool_calls(opens(None, b"<<A|x:0>>"))
        + tool_calls(goes_on(None))
        + tool_calls(opens(None, b"<<B|x:1>>"))
        + tool_calls(goes_on(None, more=b'"id":"<<B|x:1>>",')),
    ),
    _chat(
        "no index, one id twice",
        tool_calls(opens(None, b"<<A|x:0>>"), opens(None, b"<<B|x:0>>"))
        + tool_calls(goes_on(None)),
        again="B",
    ),
    _chat("index null", tool_calls(b'"index":null,' + opens(None, b"<<A|x:0>>"))),
    _chat(
        "several choices",
        b'data: {"id":"c","choices":[{"index":1,'
        b'"delta":{"tool_calls":[{"index":0,"id":"<<A|x:0>>"}]}},'
        b'{"index":0,"delta":{"tool_calls":[{"index":0,"id":"<<B|x:0>>"}]}}]}\n\n'
        b'data: {"id":"c","choices":[{"index":1,'
        b'"delta":{"tool_calls":[{"index":0,"id":"<<A|x:0>>"}]}}]}\n\n',
        again="B",
    ),
    _chat(
        "choices without an index",
        b'data: {"choices":[{"delta":{"tool_calls":[{"index":0,"id":"<<A|x:0>>"}]}},'
        b'{"delta":{"tool_calls":[{"index":0,"id":"<<B|x:0>>"}]}}]}\n\n',
        again="B",
    ),
    _chat("usage alone", _SIMPLE + b'data: {"choices":[],"usage":{"total_tokens":13}}\n\n'),
    _chat(
        "error in the middle", _SIMPLE[:-14] + b'data: {"error":{"message":"\\"tool_calls\\""}}\n\n'
    ),
    _chat(
        "done twice, and more",
        _SIMPLE + DONE + tool_calls(goes_on(0, more=b'"id":"<<A|get_weather:0>>",')),
    ),
    _chat(
        "reasoning, content, calls",
        chunk(b'"reasoning_content":"hm \\"tool_calls\\""')
        + chunk(b'"content":"{\\"tool_calls\\":[{\\"id\\":\\"x:0\\"}]}"')
        + chunk(b'"content":"x","tool_calls":[{%s}]' % opens(0, b"<<A|x:0>>")),
    ),
    _chat(
        "empty name",
        tool_calls(opens(0, b"<<A|x:0>>", "")) + tool_calls(goes_on(0, more=b'"name":"",')),
    ),
    _chat("wrong finish reason", _SIMPLE.replace(b'"tool_calls","usage"', b'"stop","usage"')),
    _chat("no finish reason", tool_calls(opens(0, b"<<A|x:0>>")) + DONE),
    _chat(
        "not calls",
        chunk(b'"tool_calls":null')
        + chunk(b'"tool_calls":[]')
        + chunk(b'"tool_calls":"x:0"')
        + chunk(b'"tool_calls":[null,7,"x:0",[{"id":"x:0"}]]')
        + chunk(b'"tool_calls":[{"function":null}]')
        + b'data: {"choices":{"id":"tool_calls"},"tool_calls":[{"id":"x:0"}]}\n\n'
        + b'data: {"choices":[null,[{"tool_calls":0}],{"delta":null,"tool_calls":[0]}]}\n\n'
        + b'data: {"choices":[{"message":{"tool_calls":[{"id":"x:0"}]}}]}\n\n',
    ),
    _chat(
        "ids within arguments and unknown fields",
        tool_calls(
            b'"x":{"id":"x:0"},"index":0,"id":"<<A|x:0>>","function":{"name":"f","id":"x:0",'
            b'"arguments":"{\\"id\\":\\"x:0\\"}"}'
        ),
    ),
    *(
        _chat(f"message id {shown}", tool_calls(opens(0, b"<<A|x:0>>"), top=top) + DONE)
        for shown, top in (
            ("missing", b""),
            ("null", b'"id":null,'),
            ("empty", b'"id":"",'),
            ("a number", b'"id":7,'),
        )
    ),
    _chat(
        "message id changes",
        tool_calls(opens(0, b"<<A|x:0>>"), top=b'"id":"c1",')
        + tool_calls(goes_on(0, more=b'"id":"<<A|x:0>>",'), top=b'"id":"c2",'),
    ),
    _chat(
        "not JSON",
        b'data: "tool_calls"\n\ndata: {"tool_calls"\n\ndata: {"choices":[{"tool_calls"}]}\n\n'
        b'data: {"choices":[{"delta":{"tool_calls":[{"id":"x:0"]}}]}\n\n'
        b'data: {"choices" "tool_calls":1}\n\n' + _SIMPLE,
    ),
    _chat(
        "a key twice",
        b'data: {"choices":[{"delta":{"tool_calls":[{"id":"x:0"}]}}],'
        b'"id":"a","choices":[{"delta":{"tool_calls":'
        b'[{"id":"y:0"}],"tool_calls":[{"index":5,"id":"z:0","id":"<<A|x:0>>","index":0}]}}]}\n\n',
    ),
    _chat("escapes", tool_calls(rb'"inde\u0078":0,"\u0069d":"<<A|x\u003a0>>","\u0066unction":{}')),
    _chat(
        "an escaped key is not seen",
        tool_calls(opens(0, b"x:0")).replace(b"tool_calls", rb"tool_c\u0061lls"),
    ),
    _chat(
        "huge numbers",
        tool_calls(b'"n":%d,"index":0,"id":"<<A|x:0>>"' % 10**400)
        + tool_calls(b'"index":%d,"id":"<<B|y:0>>"' % 10**30),
    ),
    _chat(
        "lone surrogates", chunk(rb'"content":"\ud83d","tool_calls":[{"index":0,"id":"<<A|x:0>>"}]')
    ),
    _chat("invalid UTF-8", chunk(b'"content":"\xff","tool_calls":[{"index":0,"id":"<<A|x:0>>"}]')),
    _chat("HTML", b'<html>\n\n"tool_calls"\n</html>'),
]

_FORMS = {
    "K3 hosted": "pwd_0",
    "K3 counting the request": "Bash_210",
    "K3 elsewhere": "get_weather:0",
    "vLLM": "chatcmpl-tool-0d9f6a2b4c3e4b6f8a1d2e3f4a5b6c7d",
    "Anthropic": "toolu_01A09q90qw90lq917835lq9",
    "K2 in the prompt": "functions.get_weather:3",
    "K2 on the wire": "Write:6",
    "K2 degraded": "functionsexec5",
    "a name with digits": "mcp__srv__tool_5_0",
    "long": "mcp__a_server__a_tool_with_a_name_of_more_than_forty_characters_12",
    "unsafe characters": "a b/c.d:0",
    "not ASCII": "天气_0",
}
FORMS = [
    *(
        _messages(f"form of {name}", start() + block(0, b"<<A|%s>>" % form.encode()) + END)
        for name, form in _FORMS.items()
    ),
    *(
        _chat(f"form of {name}", tool_calls(opens(0, b"<<A|%s>>" % form.encode())) + DONE)
        for name, form in _FORMS.items()
    ),
]

STREAMS = [*MESSAGES, *CHAT, *FORMS]

_DEPTH = 100_000
LARGE = [
    _messages(
        "100,000 brackets",
        start()
        + starts(
            b'"input":%s,"type":"tool_use","id":"<<A|pwd_0>>"' % (b"[" * _DEPTH + b"]" * _DEPTH)
        )
        + starts(b'"type":"tool_use","id":"x","input":' + b'{"a":' * _DEPTH, b'"index":1,'),
    ),
    _chat(
        "100,000 brackets",
        tool_calls(
            b'"x":%s,"index":0,"id":"<<A|x:0>>"' % (b'{"a":' * _DEPTH + b"1" + b"}" * _DEPTH)
        )
        + tool_calls(b'"x":%s,"id":"x:0"' % (b"[" * _DEPTH)),
    ),
    _chat(
        "broken off within arguments",
        tool_calls(opens(0, b"<<A|x:0>>"))
        + tool_calls(b'"id":"x:0","function":{"arguments":"' + b'\\"' * _DEPTH)[:-7],
    ),
]


def named(streams: list[Stream], name: str) -> Stream:
    return next(stream for stream in streams if stream.name.partition(": ")[2] == name)

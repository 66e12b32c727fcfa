"""Where something stands, as a path."""

import json

import pytest

from moontap.care.places import places

DOCUMENT = {
    "model": "HERE0",
    "messages": [
        {"role": "user", "content": "x"},
        {"role": "user", "content": [{"type": "text", "text": 'a "quoted\\" HERE1'}]},
        {"a b": {"HERE2": [[], {}, 1, {"k": "HERE3"}]}, "n": 1},
    ],
    "z": "HERE4",
}
PATHS = [
    "$.model",
    "$.messages[1].content[0].text",
    "$.messages[2]['a b'].HERE2",
    "$.messages[2]['a b'].HERE2[3].k",
    "$.z",
]


def offsets(body: bytes, count: int) -> list[int]:
    return [body.index(b"HERE%d" % number) for number in range(count)]


@pytest.mark.parametrize("indent", [None, 2])
def test_json(indent: int | None) -> None:
    body = json.dumps(DOCUMENT, indent=indent).encode()
    assert list(places(body, offsets(body, 5), False).values()) == PATHS


def test_events() -> None:
    body = (
        b'event: HERE0\ndata: {"a":"HERE1"}\n\n: HERE2\n\n'
        b'data: {"b":\ndata: ["HERE3"]}\n\ndata: HERE4'
    )
    assert list(places(body, offsets(body, 5), True).values()) == [
        "event 1",
        "event 1 $.a",
        "before event 2",
        "event 2 $.b[0]",
        "event 3",
    ]


def test_no_json_and_broken_json() -> None:
    assert places(b"plain HERE0", [6], False) == {6: "byte 6"}
    body = b'{"a":["HERE0'
    assert places(body, offsets(body, 1), False) == {7: "$.a[0]"}

"""What of a flow's metadata is taken back from a file: what moontap itself would have put there."""

import time
from copy import deepcopy
from typing import Any

import pytest
from mitmproxy.io import tnetstring
from mitmproxy.test import tflow

from moontap.capture import metadata
from moontap.capture.metadata import settled

WELL: dict[str, list[Any]] = {
    metadata.UPSTREAM_BODY: [b"", b"\xff"],
    metadata.UPSTREAM_ENCODING: ["gzip", "gzip, br"],
    metadata.CHUNKS: [[], [[0, 0.0], [5, 1], [2**40, -3.5]]],
    metadata.HEALED: [[], [[0, 0, b""], [0, 4, b"go"], [4, 1, b""]]],
    metadata.REMINDED: [[], [[7, 20, b""]], [[7, 20, b"null"]]],
    metadata.BLOCKED: ["blocked_no_progress", "blocked_limit"],
    metadata.REPEATS: [3, 12],
    metadata.INCOMPLETE: [True],
    metadata.CALLS: [0, 7],
    metadata.REWRITTEN: [0, 7],
    metadata.SESSION: ["", "conversation-1"],
    metadata.LABELS: ["", "tool=Bash id=Bash_0"],
    metadata.FINDINGS: ["error id-reused, info id-changed"],
    metadata.ANSWERS: [[], [["Bash_0", "ok in 0.4 s"]]],
    metadata.NEW: [0, 7],
    metadata.NOTED: [[["Bash", ""]]],
    metadata.MARKED: [":speech_balloon:"],
    metadata.SCRUBBED: [b"12345678"],
}
ODD: dict[str, list[Any]] = {
    metadata.UPSTREAM_BODY: [3_000_000_000, "text", [1, 2], True],
    metadata.UPSTREAM_ENCODING: [5, b"gzip", "gz\r\nip", "gz\u00efp"],
    metadata.CHUNKS: [
        *(5, "moontap", {}, [1], [[]], [[1]], ["ab"], [[1, 2, b"x"]], [{"a": 1, "b": 2}]),
        *([[-1, 0.0]], [[1.0, 0.0]], [[True, 0.0]], [["1", 0.0]], [[10**400, 0.0]]),
        *([[1, None]], [[1, "0"]], [[1, float("nan")]], [[1, float("inf")]], [[1, 10**400]]),
    ],
    metadata.HEALED: [
        *(7, "abc", [0], [[0]], [[0, 1]], [[0, 1, "x"]], [[-1, 1, b""]], [[0, -1, b""]]),
        *([[0, 1.0, b""]], [[0, 5, b"x"], [3, 1, b"y"]], [[9, 1, b"x"], [0, 1, b"y"]]),
    ],
    metadata.REMINDED: [7, [0], [[0, 1, "x"]], [[9, 1, b""], [0, 1, b""]]],
    metadata.BLOCKED: [True, 5, b"blocked_limit", ["x"]],
    metadata.REPEATS: [-1, 1.5, "3", True],
    metadata.INCOMPLETE: [1, "yes"],
    metadata.CALLS: [-1, 1.5, "1", True, 10**400],
    metadata.REWRITTEN: [-1, None, [1]],
    metadata.SESSION: [5, b"s", ["s"], {}],
    metadata.LABELS: [5, b"tool=Bash", ["x"]],
    metadata.FINDINGS: [5, b"error", ["x"]],
    metadata.ANSWERS: [5, "ab", ["ab"], [["a"]], [["a", 5]], [[b"a", "b"]]],
    metadata.NEW: [-1, 1.5, "3", True],
    metadata.NOTED: [5, ["ab"], [["a", None]]],
    metadata.MARKED: [5, b":star:", [":star:"]],
    metadata.SCRUBBED: ["12345678", 8, 3_000_000_000],
}


def test_every_name_has_its_cases() -> None:
    names = {*metadata.ALL, metadata.SCRUBBED}
    assert names == WELL.keys() == ODD.keys()


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in WELL.items() for value in values]
)
def test_what_moontap_puts_there_stays(name: str, value: Any) -> None:
    kept = {name: value, "other.addon": 1}
    assert settled(kept) is kept


@pytest.mark.parametrize(
    ("name", "value"),
    [(name, value) for name, values in ODD.items() for value in [*values, None]],
    ids=lambda one: str(one)[:30],
)
def test_anything_else_goes_alone(name: str, value: Any) -> None:
    kept = {metadata.SESSION + "x": None, name: value, "other.addon": [1, {"a": None}]}
    assert settled(kept) == {metadata.SESSION + "x": None, "other.addon": [1, {"a": None}]}
    assert name in kept


@pytest.mark.parametrize("kept", [None, 5, "x", b"x", [["a", 1]]])
def test_what_is_no_dict_is_empty(kept: Any) -> None:
    assert settled(kept) == {}


def test_names_that_are_no_strings_go() -> None:
    assert settled({1: "a", b"b": 2, "c": 3, None: 4}) == {"c": 3}


def test_a_hundred_thousand_chunks_take_no_time() -> None:
    kept = {metadata.CHUNKS: [[100, float(at)] for at in range(100_000)]}
    begun = time.process_time()
    assert settled(kept) is kept
    assert time.process_time() - begun < 1


NOTED = [["Bash", ":red_circle:"]]
STRIPPED: list[tuple[Any, tuple[str, str], tuple[str, str]]] = [
    # what moontap set last, what stands there, what is left
    (NOTED, ("Bash", ":red_circle:"), ("", "")),
    (NOTED, ("Bash", ":star:"), ("", ":star:")),
    (NOTED, ("mine", ":red_circle:"), ("mine", "")),
    (NOTED, ("", ""), ("", "")),
    (None, ("mine", ":star:"), ("mine", ":star:")),
    ([], ("mine", ""), ("mine", "")),
    ([["a"]], ("a", ""), ("a", "")),
]


@pytest.mark.parametrize(("noted", "stands", "left"), STRIPPED)
def test_stripped_of_what_is_for_who_looks_on(
    noted: Any, stands: tuple[str, str], left: tuple[str, str]
) -> None:
    flow = tflow.tflow()
    flow.comment, flow.marked = stands
    flow.metadata = {metadata.LABELS: "tool=Bash", metadata.NEW: 3, "mine": 1, metadata.CALLS: 2}
    if noted is not None:
        flow.metadata[metadata.NOTED] = noted
    metadata.strip(flow)
    assert (flow.comment, flow.marked) == left
    assert flow.metadata == {"mine": 1, metadata.CALLS: 2}


@pytest.mark.parametrize(("mark", "left"), [(":speech_balloon:", ""), (":star:", ":star:")])
def test_a_mark_that_a_command_has_set_goes_too(mark: str, left: str) -> None:
    flow = tflow.tflow()
    flow.marked = mark
    flow.metadata = {metadata.MARKED: ":speech_balloon:", metadata.NOTED: NOTED}
    metadata.strip(flow)
    assert (flow.marked, flow.metadata) == (left, {})


def test_shortened_it_is_the_same_in_fewer_words() -> None:
    """As `~meta` and a person see it; mitmproxy writes, copies and compares it as before."""
    kept: dict[str, Any] = {
        metadata.UPSTREAM_BODY: b"data: {}" * 500,
        metadata.CHUNKS: [[2000, 0.1]] * 2000,
        metadata.HEALED: [[at * 9, 6, b"Bash_0"] for at in range(300)],
        metadata.SESSION: "s-1",
        "mine": b"data: {}",
    }
    short = dict(kept)
    metadata.shorten(short)
    assert short == kept
    assert tnetstring.dumps(short) == tnetstring.dumps(kept)
    assert deepcopy(short) == kept
    assert [f"{value}" for value in short.values()] == [
        "<4,000 bytes>",
        "<2,000 chunks>",
        "<300 edits>",
        "s-1",
        "b'data: {}'",
    ]
    assert [str(value) for value in short.values()] == [f"{value}" for value in short.values()]
    assert repr(short[metadata.UPSTREAM_BODY]) == "<4,000 bytes>"
    assert short[metadata.UPSTREAM_BODY][:4] == b"data"
    assert metadata.settled(short) is short

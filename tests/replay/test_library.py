from __future__ import annotations

import json
from pathlib import Path

import pytest
from mitmproxy.addons.savehar import SaveHar
from mitmproxy.http import HTTPFlow

from moontap.capture.reader import Unreadable
from moontap.replay.keys import Keys
from moontap.replay.library import Library, load
from moontap.rules import Rules
from moontap.wire.types import Protocol
from tests.replay.recording import flow, save
from tests.samples import CHAT, MESSAGES, chat_request, messages_request


def found(library: Library, path: str, body: bytes) -> list[str]:
    key = Keys(library.rules).key("POST", path, body)
    return [one.label for one in library.find(key)]


def test_exchanges_are_found_in_the_order_in_which_they_were_asked(tmp_path: Path) -> None:
    body = messages_request()
    first = [flow(body, started=30), flow(chat_request(), path=CHAT, started=5)]
    save(tmp_path / "a.flow", first)
    save(tmp_path / "b.flow", [flow(body, started=20), flow(body, started=40)])
    save(tmp_path / "20261129T000000Z-1" / "traffic.flow", [flow(body, started=10)])
    library = load([tmp_path], Rules())
    assert found(library, MESSAGES, body) == [
        "20261129T000000Z-1/traffic.flow 1 of 1 (turn 1)",
        "b.flow 1 of 2 (turn 1)",
        "a.flow 1 of 2 (turn 1)",
        "b.flow 2 of 2 (turn 1)",
    ]
    assert [one.started for one in library.exchanges] == [5, 10, 20, 30, 40]


def test_it_says_where_the_protocols_went(tmp_path: Path) -> None:
    flows = [flow(None, method="GET", path="/v1/models")]
    flows += [
        flow(messages_request(), path="/coding/v1/messages?beta=true"),
        flow(chat_request(), path=CHAT),
    ]
    library = load([save(tmp_path / "x.flow", flows)], Rules())
    assert library.paths == {Protocol.ANTHROPIC: "/coding/v1/messages", Protocol.OPENAI: CHAT}


def test_what_is_damaged_is_counted_and_the_rest_is_used(tmp_path: Path) -> None:
    bodies = [messages_request(opening=str(n)) for n in range(3)]
    whole = save(tmp_path / "x.flow", map(flow, bodies)).read_bytes()
    (tmp_path / "x.flow").write_bytes(whole[:-9])
    library = load([tmp_path / "x.flow"], Rules())
    assert len(library.exchanges) == 2
    (loss,) = library.losses.values()
    assert loss.records == 1
    assert found(library, MESSAGES, bodies[1]) == ["x.flow 2 of 2 (turn 1)"]


def test_progress_is_that_of_all_files_together(tmp_path: Path) -> None:
    files = [save(tmp_path / f"{n}.flow", [flow(messages_request())] * 2) for n in range(2)]
    told: list[int] = []
    load([tmp_path], Rules(), told.append)
    sizes = [path.stat().st_size for path in files]
    assert told == [sizes[0] // 2, sizes[0], sizes[0] + sizes[1] // 2, sum(sizes)]


def test_what_is_no_flow_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "x.flow").write_text("no flows here")
    with pytest.raises(Unreadable, match=r"x\.flow"):
        load([tmp_path], Rules())


@pytest.mark.parametrize(
    ("body", "nearest"),
    [
        # the one that shares the longest history
        (messages_request([("a", "pwd", "x"), ("b", "ls", "other")]), 2),
        (messages_request([("a", "pwd", "other")]), 1),
        # none of it: the same model, and about as long
        (messages_request([("a", "pwd", "x")], opening="new", model="kimi-k2"), 4),
        (messages_request([], opening="new"), 0),
    ],
)
def test_the_nearest(body: bytes, nearest: int, tmp_path: Path) -> None:
    history = [("a", "pwd", "x"), ("b", "ls", "y")]
    recorded = [messages_request(history[:count]) for count in range(3)]
    recorded.append(messages_request(opening="two", model="kimi-k2"))
    recorded.append(messages_request(history[:1], opening="two", model="kimi-k2"))
    library = load([save(tmp_path / "x.flow", map(flow, recorded))], Rules())
    one = library.nearest(Keys(Rules()).key("POST", MESSAGES, body))
    assert one
    assert one.number - 1 == nearest


def test_another_file_in_its_place_is_not_served(tmp_path: Path) -> None:
    path, body = tmp_path / "x.flow", messages_request()
    one, other, more = (flow(body, [text]) for text in (b"one", b"two", b"three"))
    other.id = one.id[:-1] + "x"  # of one length, so that a record begins at each offset
    library = load([save(path, [one, one])], Rules())
    save(path, [one, one, more])  # a tap still writes it
    for recorded in library.exchanges:
        response = recorded.flow().response
        assert response
        assert response.content == b"one"
    save(path, [other, other])
    for recorded in library.exchanges:
        with pytest.raises(Unreadable, match=r"x\.flow: has changed since it was read"):
            recorded.flow()


def test_another_har_file_in_its_place_is_not_served(tmp_path: Path) -> None:
    path, body = tmp_path / "x.har", messages_request()

    def put(*flows: HTTPFlow) -> Path:
        path.write_text(json.dumps(SaveHar().make_har(list(flows))))
        return path

    one, other = (flow(body, [text]) for text in (b"one", b"two"))
    library = load([put(one, other)], Rules())
    first = library.exchanges[0]
    assert first.flow().request.content == body
    put(other, one)  # their ids are their numbers
    with pytest.raises(Unreadable, match="has changed"):
        first.flow()


def test_an_empty_library_has_no_nearest() -> None:
    assert Library(Rules()).nearest(Keys(Rules()).key("GET", "/", b"")) is None

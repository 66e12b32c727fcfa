"""The smallest part of a file that still shows a pair."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from mitmproxy import http
from mitmproxy.io import tnetstring

from moontap.care import cut
from moontap.care.cut import Book, Pair, around, playable, read, smallest
from moontap.care.relog import Seen, relog
from tests.samples import messages_events, messages_request
from tests.saved import conversation, exchange, record

# Two sessions side by side. In the first Bash_0 comes back with each reply and the second and
# fourth call are lost; the other loses nothing.
LOST = conversation(["pwd", "ls", "date", "id", "env"], lost=frozenset({1, 3}))
FINE = conversation(["make"] * 5, session="s-2", id_="toolu_{}")
MODELS = exchange(b"", b"{}", number=90, path="/v1/models", session=None)
FLOWS = [flow for pair in zip(LOST, FINE, strict=True) for flow in pair]
FLOWS.insert(1, MODELS)
AT = {flow.id: number for number, flow in enumerate(FLOWS)}


class Shelf:
    """Flows to load, and how often they were."""

    def __init__(self, flows: Sequence[http.HTTPFlow]) -> None:
        self._records = [record(flow) for flow in flows]
        self.loads: list[int] = []

    def __call__(self, numbers: Sequence[int]) -> Iterator[http.HTTPFlow]:
        assert list(numbers) == sorted(numbers)
        self.loads.append(len(numbers))
        for number in numbers:
            state: Any = tnetstring.loads(self._records[number])
            yield http.HTTPFlow.from_state(state)  # type: ignore[misc]


def book(flows: Sequence[http.HTTPFlow]) -> Book:
    return read(Shelf(flows)(range(len(flows))))


def find(found: Book, **wanted: object) -> Pair:
    (pair,) = [
        pair
        for pair in found.pairs
        if all(pair.line[name] == value for name, value in wanted.items())
    ]
    return pair


def numbers(*ids: str) -> list[int]:
    return sorted(AT[id_] for id_ in ids)


def shown(flows: Sequence[http.HTTPFlow], chosen: Sequence[int]) -> set[tuple[object, ...]]:
    kept = [flows[number] for number in chosen]
    return {pair.shape for pair in book(kept).pairs}


def command(text: str) -> dict[str, str]:
    return {"command": text}


def test_what_a_file_holds() -> None:
    found = book(FLOWS)
    assert found.seen.exchanges == 13
    assert found.seen.paired == 12
    assert found.seen.sessions[:3] == ["s-1", None, "s-2"]
    lost = find(found, arguments=command("ls"))
    assert (lost.line["status"], lost.settled) == ("unanswered", AT["0002-s-1"])
    assert found.numbers("0002-s-1") == [AT["0002-s-1"]]
    assert found.numbers("0002") == numbers("0002-s-1", "0002-s-2")


@pytest.mark.parametrize(
    ("wanted", "kept"),
    [
        # Its reply, and the request that went on without it: that says the earlier use, too.
        ("ls", ["0001-s-1", "0002-s-1"]),
        ("id", ["0003-s-1", "0004-s-1"]),
        ("pwd", ["0000-s-1", "0001-s-1"]),
        ("env", ["0004-s-1", "0005-s-1"]),
    ],
)
def test_the_exchanges_that_a_line_names_will_do(wanted: str, kept: list[str]) -> None:
    shelf, found = Shelf(FLOWS), book(FLOWS)
    pair = find(found, arguments=command(wanted))
    chosen = smallest(found, pair, shelf)
    assert chosen == numbers(*kept)
    assert pair.shape in shown(FLOWS, chosen)
    assert shelf.loads == [2]


def test_an_earlier_use_of_the_id_is_kept_where_only_that_shows_it() -> None:
    # The client lost both calls, so no request has the first one.
    flows = conversation(["pwd", "ls", "date", "id"], lost=frozenset({0, 1, 2}))
    found = book(flows)
    pair = find(found, arguments=command("date"))
    assert pair.line["duplicate"]
    assert smallest(found, pair, Shelf(flows)) == [1, 2, 3]


def test_a_pair_of_a_history_that_began_elsewhere() -> None:
    first = exchange(messages_request([("Bash_9", "old", "x")], opening="hello"), b"")
    flows = [first, *conversation(["a", "b", "c"], first=1, id_="Bash_f{}")]
    found = book(flows)
    pair = find(found, id="Bash_9")
    assert pair.line["source"] == "history"
    assert smallest(found, pair, Shelf(flows)) == [0]


def test_a_set_that_needs_several_is_reduced_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    flows = conversation(["x"] * 40, id_="Bash_{}")
    found = book(flows)
    pair = found.pairs[30]
    needed = {3, 17, 22, 30, 31}

    def only_with_all(load: Iterator[http.HTTPFlow], seen: Seen, rules: object) -> Any:
        kept = list(load)
        if needed <= {int(flow.id[:4]) for flow in kept}:
            return relog(kept, seen)
        return iter(())

    monkeypatch.setattr(cut, "relog", only_with_all)
    shelf = Shelf(flows)
    assert smallest(found, pair, shelf) == sorted(needed)
    assert len(shelf.loads) <= cut.MOST_TRIES
    monkeypatch.setattr(cut, "MOST_TRIES", 9)
    shelf = Shelf(flows)
    assert needed <= set(smallest(found, pair, shelf)) < set(range(41))
    assert len(shelf.loads) <= 10


def test_a_call_that_only_the_end_of_the_file_left_unanswered() -> None:
    flows = conversation(["pwd", "ls"])[:2]
    found = book(flows)
    pair = find(found, arguments=command("ls"))
    assert (pair.line["status"], pair.settled) == ("unanswered", None)
    assert smallest(found, pair, Shelf(flows)) == [1]
    # One that the conversation went on without is another thing, and is not shown so.
    assert find(book(LOST), arguments=command("ls")).shape[-1] is False


def test_secrets_do_not_stand_in_the_way() -> None:
    flows = conversation(
        ["echo made-up-token-77", "ls"],
        lost=frozenset({1}),
        results={0: "made-up-token-77"},
        authorization="Bearer made-up-token-77",
    )
    found = book(flows)
    assert "made-up" not in str(found.pairs)
    assert smallest(found, found.pairs[0], Shelf(flows)) == [0, 1]


@pytest.mark.parametrize(
    ("id_", "commands"),
    [
        ("Bash_0", ["ls", "date", "id", "env", "pwd"]),
        ("toolu_3", ["make"]),
        ("0001-s-1", ["ls", "pwd"]),
        ("0003-s-2", ["make"] * 2),
        ("0090", []),
        ("nothing", []),
    ],
)
def test_the_pairs_that_an_id_stands_for_those_that_went_wrong_first(
    id_: str, commands: list[str]
) -> None:
    found = book(FLOWS)
    assert [pair.line["arguments"]["command"] for pair in around(found, id_)] == commands


def test_either_form_of_an_id_will_do() -> None:
    (flow, last) = conversation(["pwd"])
    assert flow.response
    flow.metadata["moontap.upstream_body"] = flow.response.raw_content
    flow.response.raw_content = b"".join(messages_events("Bash_0_tnew"))
    last.request.content = messages_request([("Bash_0_tnew", "pwd", "/w")])
    found = book([flow, last])
    assert around(found, "Bash_0") == around(found, "Bash_0_tnew") == found.pairs[:1]
    assert found.pairs[0].line["upstream_id"] == "Bash_0"


def test_all_that_led_to_it() -> None:
    found = book(FLOWS)
    chosen = playable(found, numbers("0002-s-1"))
    assert chosen == numbers("0000-s-1", "0090-none", "0001-s-1", "0002-s-1")
    assert playable(found, numbers("0001-s-1", "0003-s-2")) == list(range(AT["0003-s-2"] + 1))


def test_of_a_request_that_was_sent_again_and_again_the_last_is_kept() -> None:
    """An agent that drops a result asks for it all night."""
    flows = conversation(["pwd", "ls"])
    stuck = [exchange(flows[1].request.content or b"", b"", number=n) for n in range(2, 52)]
    found = book([*flows[:2], *stuck])
    assert playable(found, [51]) == [0, 51]
    assert playable(found, [1, 51]) == [0, 1, 51]


def test_it_is_quick_at_size() -> None:
    """500 exchanges of 100 KB, of which a fifth are lost."""
    result = "x" * 400
    lost = frozenset(range(3, 500, 5))
    flows = conversation(
        [f"cmd {n}" for n in range(500)], lost=lost, results=dict.fromkeys(range(500), result)
    )
    assert max(len(flow.request.content or b"") for flow in flows) > 100_000
    found, shelf = book(flows), Shelf(flows)
    pair = around(found, "Bash_0")[300]
    started = time.process_time()
    chosen = smallest(found, pair, shelf)
    assert time.process_time() - started < 3
    assert len(chosen) == 2
    assert sum(shelf.loads) < 20

"""Conversations as scripts: a list of requests with what their replies delivered, and the pairs.

A message is written as a string (a user's text), a list of calls (an assistant's) or a dict of
results; a call is (id, arguments), its tool is the id's front. Most cases use K3's way of naming,
where every reply's call is `pwd_0`, because that is what makes pairing hard.
"""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from moontap.conversation import MAX_BRANCHES, MAX_SESSIONS, Placed, Tracker
from moontap.lineage import Outcome, Tracked
from moontap.pairing import Pairing
from moontap.wire.types import Call, Message, Result

type Turn = tuple[list[Any], list[Any]]
"""A request's messages, and the calls that its reply delivered."""

PWD = ["pwd_0"]


def message(written: Any) -> Message:
    match written:
        case str() as text:
            return Message("user", (), (), text)
        case ("says", str() as text):
            return Message("assistant", (), (), text)
        case ("says", str() as text, *calls):
            return Message("assistant", tuple(call(c, n) for n, c in enumerate(calls)), (), text)
        case list() as calls:
            return Message("assistant", tuple(call(c, n) for n, c in enumerate(calls)), (), "")
        case dict() as written_results:
            results = dict(written_results)
            text = results.pop("text", "")  # said beside the results, as reminders are
            return Message("user", (), tuple(result(k, v) for k, v in results.items()), text)
    raise AssertionError(written)


def call(written: Any, block: int) -> Call:
    id_, arguments = written if isinstance(written, tuple) else (written, {})
    name = id_.rstrip("0123456789").rstrip("_:")
    return Call(id_, name, json.dumps(arguments).encode(), block)


def result(id_: str, content: str) -> Result:
    is_error = content.startswith("!")
    # "pwd_0#2" is a second result for pwd_0: a dict has a key once.
    return Result(id_.partition("#")[0], json.dumps(content).encode(), is_error, 0)


@dataclass
class Run:
    """Plays turns through a tracker; a pair is written `status id@reply=result`."""

    tracker: Tracker[str] = field(default_factory=Tracker)
    replies: int = 0

    def turn(
        self, messages: list[Any], delivered: list[Any], session: object = "s", label: str = "L"
    ) -> list[str]:
        self.replies += 1
        tracked = [
            Tracked(c.id, c.name, c.arguments, f"r{self.replies}")
            for c in (call(written, n) for n, written in enumerate(delivered))
        ]
        history = [message(written) for written in messages]
        outcomes = self.tracker.exchange(session, history, tracked, "history", label).outcomes
        return [self.say(outcome) for outcome in outcomes]

    def close(self) -> list[str]:
        return [self.say(outcome) for outcome in self.tracker.close()]

    @staticmethod
    def say(outcome: Outcome[str]) -> str:
        id_ = outcome.call.id if outcome.call else outcome.result.id if outcome.result else "?"
        origin = f"@{outcome.call.origin}" if outcome.call else ""
        content = f"={json.loads(outcome.result.content)}" if outcome.result else ""
        return f"{outcome.status.value} {id_}{origin}{content}"


def grown(*results: str) -> list[Any]:
    """A history of `pwd_0` calls with these results."""
    history: list[Any] = ["go"]
    for each in results:
        history += [PWD, {"pwd_0": each}]
    return history


# name: turns, then the pairs of each turn, then those at the end of the run.
CASES: dict[str, tuple[list[Turn], list[list[str]], list[str]]] = {
    "one call, one result": (
        [(["go"], PWD), (grown("/w"), [])],
        [[], ["ok pwd_0@r1=/w"]],
        [],
    ),
    "the same id, tool, arguments and result in every turn": (
        [
            (["go"], PWD),
            (grown("/w"), PWD),
            (grown("/w", "/w"), PWD),
            (grown("/w", "/w", "/w"), []),
        ],
        [[], ["ok pwd_0@r1=/w"], ["ok pwd_0@r2=/w"], ["ok pwd_0@r3=/w"]],
        [],
    ),
    "a result that says it failed": (
        [(["go"], PWD), (grown("!no"), [])],
        [[], ["error pwd_0@r1=!no"]],
        [],
    ),
    "the client drops the second call, the model repeats it": (
        [
            (["go"], PWD),
            (grown("/w"), PWD),
            ([*grown("/w"), ("says", "again"), "(no content)"], PWD),
            ([*grown("/w"), ("says", "again"), "(no content)", "(no content)"], []),
        ],
        [[], ["ok pwd_0@r1=/w"], ["unanswered pwd_0@r2"], ["unanswered pwd_0@r3"]],
        [],
    ),
    "a retry of the same request logs nothing twice": (
        [(["go"], PWD), (grown("/w"), []), (grown("/w"), PWD), (grown("/w", "2"), [])],
        [[], ["ok pwd_0@r1=/w"], [], ["ok pwd_0@r3=2"]],
        [],
    ),
    "a stream and its fallback are one turn": (
        [(["go"], PWD), (["go"], PWD), (grown("/w"), []), (grown("/w"), [])],
        [[], [], ["ok pwd_0@r2=/w"], []],
        [],
    ),
    "a broken stream whose calls the client does use": (
        [(["go"], ["pwd_0", "ls_0"]), (["go"], ["ls_0"]), (["go", ["ls_0"], {"ls_0": "a"}], [])],
        [[], [], ["ok ls_0@r2=a"]],
        [],
    ),
    "the same conversation run twice": (
        [(["go"], PWD), (grown("/w"), []), (["go"], PWD), (grown("/w"), [])],
        [[], ["ok pwd_0@r1=/w"], [], ["ok pwd_0@r3=/w"]],
        [],
    ),
    "joined midway": (
        [(grown("1", "2"), PWD), (grown("1", "2", "3"), [])],
        [["ok pwd_0@history=1", "ok pwd_0@history=2"], ["ok pwd_0@r1=3"]],
        [],
    ),
    "compacted: the old pairs gone, a summary first": (
        [
            (["go"], PWD),
            (grown("1"), PWD),
            (grown("1", "2"), PWD),
            (["summary", PWD, {"pwd_0": "2"}, PWD, {"pwd_0": "3"}], PWD),
            (["summary", PWD, {"pwd_0": "2"}, PWD, {"pwd_0": "3"}, PWD, {"pwd_0": "4"}], []),
        ],
        [[], ["ok pwd_0@r1=1"], ["ok pwd_0@r2=2"], ["ok pwd_0@r3=3"], ["ok pwd_0@r4=4"]],
        [],
    ),
    "compacted to nothing but the summary": (
        [
            (["go"], PWD),
            (grown("1"), []),
            (["summary"], PWD),
            (["summary", PWD, {"pwd_0": "1"}], []),
        ],
        [[], ["ok pwd_0@r1=1"], [], ["ok pwd_0@r3=1"]],
        [],
    ),
    "rewound and gone on otherwise": (
        [
            (["go"], PWD),
            (grown("1"), PWD),
            (grown("1", "2"), PWD),
            ([*grown("1"), "no, do this"], PWD),
            ([*grown("1"), "no, do this", PWD, {"pwd_0": "x"}], []),
        ],
        [[], ["ok pwd_0@r1=1"], ["ok pwd_0@r2=2"], [], ["ok pwd_0@r4=x"]],
        ["unanswered pwd_0@r3"],
    ),
    "parallel calls, same id, results in order": (
        [
            (["go"], ["pwd_0", "pwd_0"]),
            (["go", ["pwd_0", "pwd_0"], {"pwd_0": "1", "pwd_0#2": "2"}], []),
        ],
        [[], ["ok pwd_0@r1=1", "ok pwd_0@r1=2"]],
        [],
    ),
    "same id, other arguments, echoed in another order": (
        [
            (["go"], [("sh_0", {"c": 1}), ("sh_0", {"c": 2})]),
            (["go", [("sh_0", {"c": 2}), ("sh_0", {"c": 1})], {"sh_0": "two", "sh_0#": "one"}], []),
        ],
        [[], ["ok sh_0@r1=two", "ok sh_0@r1=one"]],
        [],
    ),
    "arguments spelled anew by the client": (
        [
            (["go"], [("sh_0", {"a": 1, "b": 2.0})]),
            (["go", [("sh_0", {"b": 2, "a": 1})], {"sh_0": "x"}], []),
        ],
        [[], ["ok sh_0@r1=x"]],
        [],
    ),
    "results split over two messages": (
        [(["go"], ["a_0", "b_0"]), (["go", ["a_0", "b_0"], {"a_0": "1"}, {"b_0": "2"}], [])],
        [[], ["ok a_0@r1=1", "ok b_0@r1=2"]],
        [],
    ),
    "results split over two requests": (
        [
            (["go"], ["a_0", "b_0"]),
            (["go", ["a_0", "b_0"], {"a_0": "1"}], []),
            (["go", ["a_0", "b_0"], {"a_0": "1"}, {"b_0": "2"}], []),
        ],
        [[], ["ok a_0@r1=1"], ["ok b_0@r1=2"]],
        [],
    ),
    "one of two results never comes": (
        [
            (["go"], ["a_0", "b_0"]),
            (["go", ["a_0", "b_0"], {"a_0": "1"}], []),
            (["go", ["a_0", "b_0"], {"a_0": "1"}, ("says", "done"), "thanks"], []),
        ],
        [[], ["ok a_0@r1=1"], ["unanswered b_0@r1"]],
        [],
    ),
    "a result whose call was never seen, repeated with the history": (
        [(["go", {"x_9": "?"}], []), (["go", {"x_9": "?"}, ("says", "hm"), "more"], [])],
        [["orphan x_9=?"], []],
        [],
    ),
    "a result whose call the client dropped": (
        [(["go"], ["pwd_0"]), (["go", {"pwd_0": "/w"}], [])],
        [[], ["ok pwd_0@r1=/w"]],
        [],
    ),
    "several results for one call": (
        [(["go"], PWD), (["go", PWD, {"pwd_0": "1", "pwd_0#2": "2"}], [])],
        [[], ["ok pwd_0@r1=1", "orphan pwd_0=2"]],
        [],
    ),
    "no result at the end of the run": ([(["go"], PWD)], [[]], ["unanswered pwd_0@r1"]),
    "a retried reply without a result counts once": (
        [(["go"], PWD), (["go"], PWD)],
        [[], []],
        ["unanswered pwd_0@r2"],
    ),
    "a history that ends with a call": (
        [(["go", PWD], []), (["go", PWD, {"pwd_0": "late"}], [])],
        [[], ["ok pwd_0@history=late"]],
        [],
    ),
    "a call of the history without a result": (
        [(["go", PWD, ("says", "hm"), "well"], []), (["go", PWD, ("says", "hm"), "well", "x"], [])],
        [["unanswered pwd_0@history"], []],
        [],
    ),
    "a reminder added to an old message, a text between": (
        [
            (["go", ("says", "hi"), "more"], PWD),
            (["go+reminder", ("says", "hi"), "more", PWD, {"pwd_0": "1"}], PWD),
            (["go", ("says", "hi"), "more", PWD, {"pwd_0": "1"}, PWD, {"pwd_0": "2"}], []),
        ],
        [[], ["ok pwd_0@r1=1"], ["ok pwd_0@r2=2"]],
        [],
    ),
    "old results cleared by the client": (
        [
            (["go"], PWD),
            (grown("1"), PWD),
            ([*grown("cleared"), PWD, {"pwd_0": "2"}], []),
        ],
        [[], ["ok pwd_0@r1=1"], ["ok pwd_0@r2=2"]],
        [],
    ),
    "the same reminder beside the results of two conversations": (
        [
            (["task A"], PWD),
            (["task B"], PWD),
            (["task A", PWD, {"pwd_0": "/a", "text": "todo"}], []),
            (["task B", PWD, {"pwd_0": "/b", "text": "todo"}], []),
        ],
        [[], [], ["ok pwd_0@r1=/a"], ["ok pwd_0@r2=/b"]],
        [],
    ),
    "two conversations whose client drops a pair": (
        [
            (["task A"], PWD),
            (["task B"], PWD),
            (["task A", ("says", "(no content)"), "(no content)"], PWD),
            (["task B", ("says", "(no content)"), "(no content)"], PWD),
        ],
        [[], [], ["unanswered pwd_0@r1"], ["unanswered pwd_0@r2"]],
        ["unanswered pwd_0@r3", "unanswered pwd_0@r4"],
    ),
    "compacted, with the same reminder as before": (
        [
            (["go"], PWD),
            (["go", PWD, {"pwd_0": "1", "text": "todo"}], PWD),
            (["summary", PWD, {"pwd_0": "2", "text": "todo"}], []),
        ],
        [[], ["ok pwd_0@r1=1"], ["ok pwd_0@r2=2"]],
        [],
    ),
    "two agents with one prompt and no name": (
        [
            (["go"], [("pwd_0", {"n": 1})]),
            (["go"], [("pwd_0", {"n": 2})]),
            (["go", [("pwd_0", {"n": 2})], {"pwd_0": "two"}], []),
            (["go", [("pwd_0", {"n": 1})], {"pwd_0": "one"}], []),
        ],
        [[], [], ["ok pwd_0@r2=two"], ["ok pwd_0@r1=one"]],
        [],
    ),
    "rewound to the start twice": (
        [
            (["go"], [("pwd_0", {"n": 1})]),
            (["go", [("pwd_0", {"n": 1})], {"pwd_0": "1"}], []),
            (["go"], []),
            (["go", ("says", "hi"), "next"], []),
            (["go"], [("pwd_0", {"n": 5})]),
            (["go", [("pwd_0", {"n": 5})], {"pwd_0": "5"}], []),
        ],
        [[], ["ok pwd_0@r1=1"], [], [], [], ["ok pwd_0@r5=5"]],
        [],
    ),
    "rewound, the same calls again, a text changed": (
        [
            (["go"], PWD),
            (grown("1"), PWD),
            (grown("1", "2"), PWD),
            ([*grown("1", "2"), PWD, {"pwd_0": "3", "text": "todo"}], PWD),
            (grown("1"), PWD),
            ([*grown("1"), ("says", "t", "pwd_0"), {"pwd_0": "5"}], PWD),
            ([*grown("1"), ("says", "t", "pwd_0"), {"pwd_0": "5"}, PWD, {"pwd_0": "6"}], PWD),
        ],
        [
            [],
            ["ok pwd_0@r1=1"],
            ["ok pwd_0@r2=2"],
            ["ok pwd_0@r3=3"],
            [],
            ["ok pwd_0@r5=5"],
            ["ok pwd_0@r6=6"],
        ],
        ["unanswered pwd_0@r4", "unanswered pwd_0@r7"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_pairs_of_a_conversation(name: str) -> None:
    turns, expected, at_end = CASES[name]
    run = Run()
    assert [run.turn(messages, delivered) for messages, delivered in turns] == expected
    assert run.close() == at_end


@pytest.mark.parametrize("session", [("s", "agent-1"), ("other", None), "s"])
def test_parallel_agents_with_the_same_calls_do_not_mix(session: object) -> None:
    run = Run()
    # As sub-agents do: the same tools, ids and arguments, other prompts, turns interleaved.
    assert run.turn(["task A"], PWD) == []
    assert run.turn(["task B"], PWD, session) == []
    assert run.turn(["task B", PWD, {"pwd_0": "b"}], PWD, session) == ["ok pwd_0@r2=b"]
    assert run.turn(["task A", PWD, {"pwd_0": "a"}], PWD) == ["ok pwd_0@r1=a"]
    assert run.turn(["task A", PWD, {"pwd_0": "a"}, PWD, {"pwd_0": "a2"}], []) == ["ok pwd_0@r4=a2"]
    assert run.close() == ["unanswered pwd_0@r3"]


def test_a_conversation_keeps_its_name_through_a_compaction() -> None:
    tracker: Tracker[str] = Tracker()
    first = [message(m) for m in grown("1", "2")]
    after = [message(m) for m in ["summary", PWD, {"pwd_0": "2"}]]
    assert tracker.exchange("s", first, [], "h", "first").label == "first"
    assert tracker.exchange("s", after, [], "h", "second").label == "first"
    assert tracker.exchange("s", [message("unlike")], [], "h", "third").label == "third"


def test_duplicates_within_a_joined_history_are_known() -> None:
    tracker: Tracker[str] = Tracker()
    outcomes = tracker.exchange("s", [message(m) for m in grown("1", "2")], [], "h").outcomes
    assert [o.call.duplicate for o in outcomes if o.call] == [False, True]


def test_what_is_dropped_to_stay_bounded_is_reported() -> None:
    run = Run()
    said = [run.turn([f"task {n}"], PWD) for n in range(MAX_BRANCHES + 1)]
    assert said[-1] == ["unanswered pwd_0@r1"]
    run = Run()
    said = [run.turn(["go"], PWD, session=n) for n in range(MAX_SESSIONS + 2)]
    assert said[-2:] == [["unanswered pwd_0@r1"], ["unanswered pwd_0@r2"]]


def test_every_pair_once_however_long_the_conversation() -> None:
    run = Run()
    said: list[str] = []
    for n in range(200):
        said += run.turn(grown(*map(str, range(n))), PWD)
        if n % 7 == 0:
            said += run.turn(grown(*map(str, range(n))), PWD)  # a retry
    results = [line.rpartition("=")[2] for line in said]
    assert results == [str(n) for n in range(199)]


def place(run: Run, messages: list[Any], *delivered: str, session: object = "s") -> Placed[str]:
    """A request placed, and the calls that its reply delivered."""
    run.replies += 1
    tracked = [
        Tracked(c.id, c.name, c.arguments, f"r{run.replies}")
        for c in (call(written, n) for n, written in enumerate(delivered))
    ]
    return run.tracker.exchange(session, [message(m) for m in messages], tracked, "history", "L")


@pytest.mark.parametrize(
    ("before", "after", "new"),
    [
        ([], grown("1"), 0),
        ([["go"]], grown("1"), 1),
        ([["go"], grown("1")], grown("1", "2"), 3),
        ([grown("1", "2")], grown("1", "2"), 5),
        ([grown("1", "2")], grown("1"), 3),
        ([grown("1", "2")], [*grown("1"), "no, this"], 3),
        ([grown("1", "2")], ["summary", PWD, {"pwd_0": "2"}], 0),
        ([["go", PWD]], ["go", PWD, {"pwd_0": "late"}], 2),
    ],
)
def test_what_of_a_request_is_new(before: list[list[Any]], after: list[Any], new: int) -> None:
    run = Run()
    for messages in before:
        place(run, messages, "pwd_0")
    placed = place(run, after)
    assert placed.new == new
    whole = Pairing(message(written) for written in after)
    fresh = {call: result for call, result in whole.answers.items() if result[0] >= new}
    assert fresh.items() <= placed.pairing.answers.items()
    assert {at for at in whole.orphans if at[0] >= new} <= set(placed.pairing.orphans)


@pytest.mark.parametrize(
    ("before", "after", "again"),
    [
        ([["go"]], ["go"], ["pwd_0@r1"]),
        ([["go"], ["go"]], ["go"], ["pwd_0@r2"]),
        ([["go"], grown("1")], grown("1"), ["pwd_0@r2"]),
        ([["go"]], grown("1"), []),
        ([["go"]], ["go", "more"], []),
        ([["go"]], ["other"], []),
        ([], ["go"], []),
    ],
)
def test_the_calls_of_the_reply_to_just_this_history(
    before: list[list[Any]], after: list[Any], again: list[str]
) -> None:
    run = Run()
    for messages in before:
        place(run, messages, "pwd_0")
    assert [f"{call.id}@{call.origin}" for call in place(run, after, "pwd_0").again] == again


def test_conversations_are_told_apart_by_number_and_not_by_name() -> None:
    run = Run()
    one, two = place(run, ["task A"], "pwd_0"), place(run, ["task B"], "pwd_0")
    third = place(run, ["task A", PWD, {"pwd_0": "1"}])
    assert one.label == two.label == "L"
    assert (one.number, two.number, third.number) == (1, 2, 1)
    assert place(run, ["task C"]).number == 3


@pytest.mark.parametrize(
    ("messages", "at", "dropped"),
    [
        (grown("1"), 1, False),
        (["go", PWD, "no", ("says", "hm")], 1, False),
        (["go", ("says", "hm"), "(no content)"], None, True),
        (["go", {"pwd_0": "1"}], None, False),
    ],
)
def test_where_a_call_stands_and_whether_it_was_dropped(
    messages: list[Any], at: int | None, dropped: bool
) -> None:
    run = Run()
    place(run, ["go"], "pwd_0")
    (outcome,) = place(run, messages).outcomes
    assert (outcome.at, outcome.dropped) == (at, dropped)


def test_what_waits_at_the_end_of_the_run_was_not_dropped() -> None:
    run = Run()
    place(run, ["go"], "pwd_0")
    (outcome,) = run.tracker.close()
    assert (outcome.at, outcome.dropped) == (None, False)

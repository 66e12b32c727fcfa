"""The flow list: what was recorded stands on mitmproxy's flows, and what a person wrote stays."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from mitmproxy import http, options
from mitmproxy.tools.web.master import WebMaster

from moontap.capture import metadata
from moontap.capture.pairlog import Line, Logged
from moontap.capture.recorder import Recorder
from moontap.findings.types import Evidence, Finding, Party, Severity
from moontap.looking import board, heard
from moontap.looking.board import PAUSE, Board
from moontap.looking.comment import ERROR_MARK
from moontap.looking.facts import CallFact, Facts
from moontap.looking.labels import labels_of
from moontap.rules import Rules
from tests.looking.rig import Listed, until
from tests.proxying import flows_of
from tests.samples import MESSAGES, messages_events, messages_request
from tests.saved import conversation, exchange

ANSWERED = "Bash · answered in 0.5 s"


def loses_a_pair() -> list[http.HTTPFlow]:
    return conversation(["pwd", "ls"], lost=frozenset({1}))


def comments(flows: list[http.HTTPFlow]) -> list[str]:
    return [flow.comment for flow in flows]


async def test_what_a_run_comes_to() -> None:
    listed, flows = Listed(), loses_a_pair()
    listed.record(flows)
    first, second, third = flows
    assert first.comment == ANSWERED
    assert second.comment.startswith("Bash · unanswered · id-reused")
    assert third.comment.startswith("only text · end_turn · pair-dropped-by-client")
    assert [flow.marked for flow in flows] == ["", ERROR_MARK, ERROR_MARK]
    assert [flow.metadata[metadata.NEW] for flow in flows] == [0, 1, 3]
    assert second.metadata[metadata.ANSWERS] == [["Bash_0", "unanswered"]]
    assert second.metadata[metadata.FINDINGS].startswith("error id-reused")
    assert "finding=id-reused;" in second.metadata[metadata.LABELS].split()
    facts = listed.board.facts(second)
    assert facts
    assert (facts.number, facts.conversation, facts.session) == (2, 1, "s-1")
    assert facts.calls[0].line
    assert facts.calls[0].line["arguments"] == {"command": "ls"}
    assert facts.findings[0].link == "docs/findings.md#id-reused"


async def test_ids_that_repeat_are_told_by_their_place() -> None:
    """Within one reply, and from one exchange to the next."""
    said = [
        {"type": "tool_use", "id": "Bash_0", "name": "Bash", "input": {"command": "pwd"}},
        {"type": "tool_use", "id": "Bash_0", "name": "Bash", "input": {"command": "pwd"}},
    ]
    results = [
        {"type": "tool_result", "tool_use_id": "Bash_0", "content": "a"},
        {"type": "tool_result", "tool_use_id": "Bash_0", "content": "b", "is_error": True},
    ]
    history = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": said},
        {"role": "user", "content": results},
    ]
    stream = b"".join(messages_events("Bash_0", "Bash_0"))
    flows = [
        exchange(messages_request(), stream),
        exchange(messages_request(messages=history), stream, number=1),
    ]
    listed = Listed()
    listed.record(flows)
    one, other = (listed.board.facts(flow) for flow in flows)
    assert one
    assert other
    assert [call.answer for call in one.calls] == ["ok", "error"]
    assert [call.answer for call in other.calls] == [None, None]


def test_where_a_stream_began_anew_places_repeat_too() -> None:
    """Each line is of the next call that has none; one too many is of none."""
    facts = Facts(calls=[CallFact("Bash", "a", "a", choice=0, index=0) for _ in range(2)])
    line = {"id": "a", "choice": 0, "index": 0, "status": "ok", "latency_s": 1.0}
    told = [heard.answer(facts, {**line, "latency_s": seconds}) for seconds in (1.0, 2.0, 3.0)]
    assert told == [True, True, False]
    assert [call.latency_s for call in facts.calls] == [1.0, 2.0]
    assert not heard.answer(facts, {**line, "index": 1})


def test_thousands_of_answers_hold_nothing_up() -> None:
    """Of a model that calls the same tool for ever within one reply."""
    count = 20_000
    facts = Facts(calls=[CallFact("Bash", "a", "a", choice=0, index=at) for at in range(count)])
    for at in range(count):
        line = {"id": "a", "choice": 0, "index": at, "status": "ok", "latency_s": 1.0}
        assert heard.answer(facts, line)
    assert not any(facts.waiting.values())  # each was found without a look at the others
    assert facts.answered("ok") == count


async def test_what_is_kept_of_a_line_is_short() -> None:
    listed = Listed()
    flows = conversation(["x" * 5000, "ls"], results={0: "y" * 5000})
    listed.record(flows)
    facts = listed.board.facts(flows[0])
    assert facts
    line = facts.calls[0].line
    assert line
    assert line["result"] == "y" * 199 + "…"
    assert len(line["arguments"]) == 200


async def test_a_result_without_a_call_is_said_where_it_came() -> None:
    history = [
        {"role": "user", "content": "go"},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "gone", "content": "x"}],
        },
    ]
    flow = exchange(messages_request(messages=history), b"".join(messages_events()))
    listed = Listed()
    listed.record([flow])
    facts = listed.board.facts(flow)
    assert facts
    assert [line["id"] for line in facts.orphans] == ["gone"]
    assert "orphans=1" in flow.metadata[metadata.LABELS]


WROTE: list[tuple[str, str, str, tuple[str, str]]] = [
    # when, what a person made of the comment and of the mark, what stands there in the end
    ("before", "mine", "", ("mine", ERROR_MARK)),
    ("before", "", ":star:", ("Bash · unanswered · id-reused", ":star:")),
    ("between", "mine", ":star:", ("mine", ":star:")),
    ("between", "", "", ("", "")),
    ("between", "", ERROR_MARK, ("", ERROR_MARK)),
    ("after", "", "", ("", "")),
    ("after", "mine", ERROR_MARK, ("mine", ERROR_MARK)),
]


@pytest.mark.parametrize(("when", "comment", "mark", "stands"), WROTE)
async def test_what_a_person_wrote_stays(
    when: str, comment: str, mark: str, stands: tuple[str, str]
) -> None:
    """Emptied, it stays empty."""
    listed, flows = Listed(), loses_a_pair()
    flow = flows[1]
    parts = {"before": [[], flows], "between": [flows[:2], flows[2:]], "after": [flows, []]}
    first, rest = parts[when]
    listed.record(first)
    flow.comment, flow.marked = comment, mark
    listed.record(rest)
    listed.record(conversation(["pwd"], session="other", first=9))
    assert (flow.comment.partition(" · reasoning")[0], flow.marked) == stands


async def test_without_notes_there_are_labels_alone() -> None:
    listed, flows = Listed(), loses_a_pair()
    flows[0].comment = "mine"
    listed.board.notes = False
    listed.record(flows)
    assert comments(flows) == ["mine", "", ""]
    assert [flow.marked for flow in flows] == ["", "", ""]
    assert all(metadata.LABELS in flow.metadata for flow in flows)
    listed.board.notes = True
    assert flows[0].comment == "mine"
    assert flows[1].comment.startswith("Bash · unanswered")
    assert flows[1].marked == ERROR_MARK
    flows[2].marked = ":star:"
    listed.board.notes = False
    assert comments(flows) == ["mine", "", ""]
    assert [flow.marked for flow in flows] == ["", "", ":star:"]


async def test_many_changes_are_one_update() -> None:
    """Of the flow that ends mitmproxy's own hook tells; the list hears of what it does not."""
    listed, flows = Listed(), conversation(["pwd"] * 30)
    listed.record(flows)
    assert listed.updates.batches == []
    await until(lambda: listed.updates.batches)
    (batch,) = listed.updates.batches
    assert {flow.id for flow in batch} == {flow.id for flow in flows[:-1]} | {
        flow.id for flow in flows if metadata.FINDINGS in flow.metadata
    }
    listed.board.settle()
    listed.board.publish()
    await asyncio.sleep(0.3)
    assert len(listed.updates.batches) == 1  # nothing is told twice


async def test_changes_that_come_one_by_one_are_told_a_few_times_a_second() -> None:
    listed, flows = Listed(), conversation(["pwd"] * 40)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    for flow in flows:
        listed.record([flow])
        await asyncio.sleep(0.02)
    await until(lambda: any(flows[-2] in batch for batch in listed.updates.batches))
    batches = listed.updates.batches
    assert len(batches) <= (loop.time() - begun) / PAUSE + 2
    assert {flow.id for batch in batches for flow in batch} >= {flow.id for flow in flows[:-1]}


@pytest.mark.parametrize("view", [True, False])
async def test_a_reply_of_very_many_calls_is_written_at_the_lists_own_pace(
    view: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its results become certain line by line, each of them heard by itself."""
    count, written, listed = 400, list[Facts](), Listed(view=view)

    def counted(facts: Facts) -> str:
        written.append(facts)
        return labels_of(facts)

    monkeypatch.setattr(board, "labels_of", counted)
    ids = [f"Bash_{number}" for number in range(count)]
    said = [{"type": "tool_use", "id": id_, "name": "Bash", "input": {}} for id_ in ids]
    results = [{"type": "tool_result", "tool_use_id": id_, "content": "x"} for id_ in ids]
    history = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": said},
        {"role": "user", "content": results},
    ]
    asked = exchange(messages_request(), b"".join(messages_events(*ids)))
    then = exchange(messages_request(messages=history), b"".join(messages_events()), number=1)
    listed.view.add([asked, then])
    listed.recorder.observer = recorded = Turns(listed.board)
    for flow in (asked, then):
        listed.recorder.keep(flow)
        listed.board.settle(flow)
        await recorded.play(listed.recorder.log)
    await until(lambda: asked.comment == f"Bash ×{count} · answered in 0.5 s")
    assert recorded.turns > count
    assert len(written) < 12


class Turns:
    """Hands what is recorded to a board one by one, each in a turn of the loop."""

    def __init__(self, to: Board) -> None:
        self._board = to
        self._told: list[Callable[[], None]] = []
        self.turns = 0

    def exchange(self, logged: Logged, number: int, flow: http.HTTPFlow) -> None:
        self._board.exchange(logged, number, flow)

    def line(self, line: Line) -> None:
        self._told.append(partial(self._board.line, line))

    def finding(self, finding: Finding) -> None:
        self._told.append(partial(self._board.finding, finding))

    async def play(self, log: Callable[[], None]) -> None:
        log()
        for tell in self._told:
            tell()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        self.turns += len(self._told)
        self._told.clear()


async def test_heard_from_the_thread_that_records() -> None:
    listed, flows = Listed(), loses_a_pair()
    for flow in flows:
        listed.view.add([flow])
        await asyncio.to_thread(listed.recorder.keep, flow)
        listed.board.settle(flow)
        await asyncio.to_thread(listed.recorder.log)
    await until(lambda: flows[1].comment.startswith("Bash · unanswered"))
    await until(lambda: any(flows[1] in batch for batch in listed.updates.batches))


async def test_where_nobody_looks_nothing_is_told() -> None:
    listed, flows = Listed(view=False), loses_a_pair()
    listed.record(flows)
    await asyncio.sleep(0.1)
    assert listed.updates.batches == []
    assert flows[0].comment == ANSWERED  # `~comment` and `~meta` work in mitmdump, too


def test_without_a_mitmproxy() -> None:
    """In the last moments of a run, and in a test: no loop, no list, the same words."""
    recorder, board, flows = Recorder(None, Rules(), dict), Board(), loses_a_pair()
    recorder.observer = board
    for flow in flows:
        recorder.keep(flow)
        recorder.log()
    board.close()
    assert flows[0].comment == ANSWERED
    assert flows[1].marked == ERROR_MARK


async def test_a_flow_that_nobody_holds_is_let_go() -> None:
    listed, flows = Listed(view=False), conversation(["pwd"] * 5)
    held = [weakref.ref(flow) for flow in flows]
    for flow in flows:
        listed.recorder.keep(flow)
        listed.board.settle(flow)
        listed.recorder.log()
    del flow, flows
    listed.board.settle()
    gc.collect()
    # The log itself reads the latest exchange's history from its copy, not from the flow.
    assert [ref() for ref in held] == [None] * 6


async def test_what_is_saved_is_without_ours_and_with_a_persons(tmp_path: Path) -> None:
    listed = Listed(tmp_path)
    flows = conversation(["pwd", "ls", "df"])
    for flow, comment, mark in zip(
        flows, ["mine", "", "Bash", ""], ["", ":star:", ":red_circle:", ""], strict=True
    ):
        flow.metadata[metadata.NOTED] = [["Bash", ":red_circle:"]]
        flow.metadata[metadata.LABELS] = "tool=Bash"
        flow.comment, flow.marked = comment, mark
    listed.record(flows)
    assert listed.recorder.path
    saved = flows_of(listed.recorder.path)
    assert [(flow.comment, flow.marked) for flow in saved] == [
        ("mine", ""),
        ("", ":star:"),
        ("", ""),
        ("", ""),
    ]
    assert not any(name in flow.metadata for flow in saved for name in metadata.LIVE)


async def test_a_flow_that_begins_anew_has_nothing_on_it() -> None:
    listed, flows = Listed(), loses_a_pair()
    listed.record(flows)
    flows[2].comment = "mine"
    for flow in flows:
        listed.board.forget(flow)
    assert comments(flows) == ["", "", "mine"]
    assert [flow.marked for flow in flows] == ["", "", ""]
    assert not any(name in flow.metadata for flow in flows for name in metadata.LIVE)
    assert listed.board.facts(flows[0]) is None


async def test_what_is_told_after_the_end_is_not_kept() -> None:
    listed, flows = Listed(), loses_a_pair()
    listed.board.close()
    for flow in flows:
        listed.recorder.keep(flow)
        listed.recorder.log()
    assert not listed.board._heard
    assert comments(flows) == ["", "", ""]


async def test_played_again_a_flow_is_another_exchange() -> None:
    """What is said of the first goes to none of the second, although their ids are the same."""
    listed, flow = Listed(), conversation(["pwd"])[0]
    listed.record([flow])
    first = listed.board.facts(flow)
    listed.board.forget(flow)
    assert flow.response
    flow.response.timestamp_end = (flow.response.timestamp_end or 0) + 60
    listed.record([flow])
    second = listed.board.facts(flow)
    assert first
    assert second
    assert (first.number, second.number) == (1, 2)
    call = second.calls[0]
    line: Line = {"id": call.id, "choice": call.choice, "index": call.index, "result_flow": None}
    line |= {"call_flow": flow.id, "status": "ok", "latency_s": 1.0, "arguments": 1, "result": "x"}
    for facts, answers in ((first, [None]), (second, ["ok"])):
        listed.board.line({**line, "called_at": facts.ended_at})
        listed.board.settle()
        assert [one.answer for one in second.calls] == answers
    found = Finding("id-reused", Severity.ERROR, Party.API, "", "", Evidence(), 1, "", 1, flow.id)
    assert "id-reused" not in {one.code for one in second.findings}
    for number, there in ((1, False), (2, True)):
        listed.board.finding(replace(found, exchange=number))
        listed.board.settle()
        assert ("id-reused" in {one.code for one in second.findings}) is there


async def test_a_copy_that_a_person_makes_has_what_is_known_of_the_other() -> None:
    listed, flows = Listed(), conversation(["pwd"])
    listed.record(flows[:1])
    copy = flows[0].copy()
    listed.view.add([copy])
    assert copy.comment == "Bash · no result yet"
    listed.record(flows[1:])
    assert copy.comment == flows[0].comment == ANSWERED
    listed.board.notes = False
    assert copy.comment == flows[0].comment == ""


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        (Facts(asked=True), "not finished · only text"),
        (
            Facts(streaming=True, calls=[CallFact("Bash", "a", "a")]),
            "not finished · Bash · no result yet",
        ),
    ],
)
async def test_a_copy_of_what_is_under_way_has_not_finished(facts: Facts, said: str) -> None:
    listed, flow = Listed(), exchange(messages_request(), b"")
    listed.view.add([flow])
    listed.board.follow(flow, facts)
    copy = flow.copy()
    listed.view.add([copy])
    assert copy.comment == said.removesuffix(" · only text")
    assert "streaming=" not in copy.metadata[metadata.LABELS]
    listed.board.settle(flow)  # of which nothing was recorded
    listed.view.add([stranger := copy.copy()])
    assert stranger.comment == copy.comment


async def test_a_stranger_does_not_stream_for_ever() -> None:
    listed, flow = Listed(), exchange(messages_request(), b"")
    assert listed.board.view is not None
    flow.live, flow.comment = False, "streaming"
    flow.metadata = {metadata.LABELS: "streaming=yes;", metadata.NOTED: [["streaming", ""]]}
    listed.view.add([flow])
    assert (flow.comment, flow.metadata) == ("", {})


async def test_what_another_mitmproxy_had_noted_goes_with_the_notes() -> None:
    listed, flow = Listed(), exchange(messages_request(), b"")
    flow.live, flow.comment, flow.marked = False, "Bash · answered", ":star:"
    flow.metadata = {metadata.LABELS: "tool=Bash;", metadata.NOTED: [["Bash · answered", ""]]}
    listed.view.add([flow])
    assert flow.comment == "Bash · answered"
    listed.board.notes = False
    assert (flow.comment, flow.marked) == ("", ":star:")
    assert flow.metadata[metadata.LABELS] == "tool=Bash;"


@pytest.mark.parametrize("when", ["while it comes", "after its end"])
async def test_a_revert_takes_nothing_back_that_flowed(when: str) -> None:
    """A person comments on a stream, which saves the flow as it is, and later reverts that."""
    listed, (flow, _) = Listed(), conversation(["pwd"])
    listed.view.add([flow])
    response = flow.response
    assert response
    body = response.raw_content
    response.stream = through = lambda data: data
    end, response.timestamp_end = response.timestamp_end, None
    response.raw_content = b"event: mess"
    listed.board.follow(flow, Facts(streaming=True))
    flow.backup()
    flow.comment = "mine"
    if when == "after its end":
        response.raw_content, response.timestamp_end = body, end
        listed.record([flow])
    listed.master.commands.call("flow.revert", [flow])
    assert flow.response is response
    assert flow.response.stream is through
    if when == "after its end":
        assert flow.comment == "Bash · no result yet"
        assert flow.response.raw_content == body
        assert "stop=tool_use;" in flow.metadata[metadata.LABELS].split()
    else:
        assert flow.comment == "streaming"


async def test_who_is_looked_at_has_the_focus_in_mitmweb_alone() -> None:
    one, other = loses_a_pair()[:2]
    web = WebMaster(options.Options(), with_termlog=False)
    board = Board()
    board.attach(web)
    web.view.add([one, other])
    assert web.view.focus.flow is one
    board.look_at(other)
    assert web.view.focus.flow is other
    board.look_at(exchange(messages_request(), b"", path=MESSAGES, number=7))  # not in the list
    assert web.view.focus.flow is other
    listed = Listed()
    listed.view.add([one, other])
    listed.board.look_at(other)
    assert listed.view.focus.flow is one

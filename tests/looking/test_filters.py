"""The filters that the README names, each tried on saved flows that were loaded into mitmproxy.

What a filter must select is worked out here from the pairs and findings of the files, made by what
`moontap pairs` and `moontap lint` are made of: not from the labels, nor from the addon.
"""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import pytest
from mitmproxy import flowfilter, http, options
from mitmproxy.tools.dump import DumpMaster

from moontap.addon import Moontap
from moontap.capture import metadata
from moontap.capture.diagnosis import Diagnosis
from moontap.capture.reader import FlowFile
from moontap.looking.facts import Facts
from moontap.looking.labels import labels_of

ROOT = Path(__file__).parents[2]
FILES = (
    "chat-400",
    "chat-cut-stream",
    "chat-error-event",
    "chat-parallel-whole",
    "chat-restart-colon-stream",
    "claude-code-loses-pairs",
    "claude-code-rewritten",
    "claude-code-sub-agents",
    "messages-cut-mid-event",
    "messages-healing-stream",
    "messages-missing-result",
    "messages-orphan-result",
    "messages-off-schema",
)


def filters(page: str) -> list[str]:
    """The filters of the table in a page, a row each or several."""
    rows = re.findall(r"^\|[^|\n]+\|((?:[^|\n]|\\\|)*~(?:[^|\n]|\\\|)*)\|$", page, re.MULTILINE)
    return [code.replace("\\|", "|") for row in rows for code in re.findall(r"`([^`]*~.*?)`", row)]


FILTERS = filters((ROOT / "README.md").read_text("utf-8"))


@dataclass
class Known:
    """What is known of a flow, each in the words that a filter of that key may name."""

    flow: http.HTTPFlow
    words: dict[str, set[str]] = field(default_factory=lambda: defaultdict(set))


def _known(path: Path) -> Iterator[Known]:
    """By flow: tools and ids of the calls of its reply, what became of them, what was found."""
    diagnosis = Diagnosis()
    known: dict[str, Known] = {}
    late: list[tuple[str, str]] = []
    for looked in diagnosis.flows(FlowFile(path)):
        one = known[looked.flow.id] = Known(looked.flow)
        turn = looked.turn
        if turn and turn.got:
            one.words["tool"] |= {call.name for call in turn.got.calls}
            one.words["id"] |= {call.id for call in turn.got.calls if call.id}
            one.words["id"] |= {id_ for id_ in turn.got.upstream_ids if id_}
            ids = zip(turn.got.calls, turn.got.upstream_ids, strict=True)
            one.words["rewritten"] |= {"" for call, id_ in ids if call.id != id_}
        if turn:
            one.words["reused"] |= {"" for call in turn.delivered if call.duplicate}
            one.words["session"].add(turn.session)
            one.words["agent"] |= {turn.agent} if turn.agent else set()
            one.words["model"] |= {turn.model} if turn.model else set()
        for line in looked.lines:
            if line["status"] == "unanswered" and line["call_flow"]:
                late.append((line["call_flow"], "unanswered"))
        for finding in looked.findings:
            late += [(finding.flow or "", f"finding {finding.code}")]
            late += [(finding.flow or "", f"severity {finding.severity}")]
    for id_, said in late:  # what still waits at the end of a file is not called unanswered
        key, _, word = said.partition(" ")
        if id_:  # not of a call that only a history tells of
            known[id_].words[key].add(word)
    for one in known.values():
        ranks = [rank for rank in ("error", "warning", "info") if rank in one.words["severity"]]
        one.words["severity"] = set(ranks[:1])  # the worst counts
    yield from known.values()


async def _loaded(path: Path) -> list[http.HTTPFlow]:
    """The flows of a file as mitmproxy has them once they are loaded."""
    addon, started = Moontap(), asyncio.Event()
    master = DumpMaster(options.Options(), with_termlog=False, with_dumper=False)
    master.addons.get("scriptloader").addons.append(addon)
    master.addons.register(addon)
    master.addons.add(type("Running", (), {"running": lambda _: started.set()})())
    master.options.update(server=False, moontap_dir="")
    task = asyncio.create_task(master.run())
    await started.wait()
    flows = list(FlowFile(path))
    try:
        for flow in flows:
            await master.load_flow(flow)
        await addon.settled(5)
        addon.board.settle()
    finally:
        master.shutdown()
        await task
    return flows


@pytest.fixture(scope="module")
def corpus() -> list[tuple[Known, http.HTTPFlow]]:
    """Each flow as it is known from its file, and as a filter sees it."""

    async def load() -> list[tuple[Known, http.HTTPFlow]]:
        both = []
        for name in FILES:
            path = ROOT / "flows" / f"{name}.flow"
            both += list(zip(_known(path), await _loaded(path), strict=True))
        return both

    return asyncio.run(load())


def chosen(text: str, flows: Iterable[http.HTTPFlow]) -> set[str]:
    matches = cast(Callable[[Any], bool], flowfilter.parse(text))
    return {flow.id for flow in flows if matches(flow)}


KEYS = {
    *("tool", "id", "session", "agent", "finding", "severity"),
    *("rewritten", "unanswered", "reused"),
}
"""Those of the table that the files tell of in other ways; the rest has tests of its own below."""


def _parts(text: str) -> tuple[str, str] | None:
    found = re.fullmatch(r"~meta (\w+)=(.*)", text)
    return (found[1], found[2]) if found and found[1] in KEYS else None


def test_the_table_has_what_people_look_for() -> None:
    named = {parts[0] for text in FILTERS if (parts := _parts(text))}
    assert named == KEYS
    others = {text for text in FILTERS if not _parts(text)}
    assert {re.sub(r"=.*", "=", text) for text in others if text.startswith("~meta")} == {
        *("~meta conversation=", "~meta error=", "~meta ended=", "~meta streaming=")
    }
    assert any(text.startswith("~comment ") for text in others)


@pytest.mark.parametrize("text", [text for text in FILTERS if _parts(text)])
def test_a_filter_selects_what_the_files_say(
    text: str, corpus: list[tuple[Known, http.HTTPFlow]]
) -> None:
    """As it is written, and with each value that the files hold in place of the example."""
    parts = _parts(text)
    assert parts
    key, example = parts
    flows = [flow for _, flow in corpus]
    every = {word for known, _ in corpus for word in known.words[key]}
    assert every, f"no file has any {key}"
    for value in {example, *every} if example else {""}:
        value, ends = value.removesuffix(";"), ";" if example.endswith(";") else ""
        expected = {
            flow.id
            for known, flow in corpus
            for word in known.words[key]
            if (word == value if ends else word.startswith(value))
        }
        assert chosen(f"~meta {key}={value}{ends}", flows) == expected, value


def test_a_conversation(corpus: list[tuple[Known, http.HTTPFlow]]) -> None:
    (text,) = [text for text in FILTERS if "conversation=" in text]
    rows = [pair for pair in corpus if pair[0].words["agent"] or pair[0].words["session"]]
    of_file = defaultdict(set)
    for known, flow in rows:
        numbers = re.findall(r"\bconversation=(\d+)", str(flow.metadata.get(metadata.LABELS)))
        of_file[next(iter(known.words["session"]))].update(numbers)
    assert any(len(numbers) > 1 for numbers in of_file.values())  # sub-agents have their own
    one = [flow for known, flow in rows if known.words["agent"]]
    first = re.findall(r"\bconversation=(\d+)", str(one[0].metadata[metadata.LABELS]))[0]
    found = chosen(re.sub(r"\d+", first, text), one)
    agent = next(known.words["agent"] for known, flow in rows if flow is one[0])
    assert found == {flow.id for known, flow in rows if known.words["agent"] == agent}


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("error", lambda flow: (flow.response.status_code >= 400) or _has_error_event(flow)),
        ("ended", lambda flow: bool(flow.metadata.get(metadata.INCOMPLETE) or flow.error)),
    ],
)
def test_what_failed(
    key: str,
    expected: Callable[[http.HTTPFlow], bool],
    corpus: list[tuple[Known, http.HTTPFlow]],
) -> None:
    (text,) = [text for text in FILTERS if text.startswith(f"~meta {key}=")]
    flows = [flow for _, flow in corpus]
    wanted = {flow.id for flow in flows if expected(flow)}
    assert wanted
    assert chosen(text, flows) == wanted


def _has_error_event(flow: http.HTTPFlow) -> bool:
    assert flow.response
    body = flow.response.get_content(strict=False) or b""
    return bool(re.search(rb'"type": ?"error"|^data: ?\{"error"', body, re.MULTILINE))


def test_what_still_comes(corpus: list[tuple[Known, http.HTTPFlow]]) -> None:
    (text,) = [text for text in FILTERS if "streaming" in text]
    flow = corpus[0][1].copy()
    assert chosen(text, [flow, *(flow for _, flow in corpus)]) == set()
    flow.metadata = {metadata.LABELS: labels_of(Facts(streaming=True))}
    assert chosen(text, [flow]) == {flow.id}


def test_what_a_person_noted(corpus: list[tuple[Known, http.HTTPFlow]]) -> None:
    (text,) = [text for text in FILTERS if text.startswith("~comment ")]
    flow = corpus[0][1].copy()
    flow.comment = f"{text.split()[1]}: ask about this"
    assert chosen(text, [flow, *(flow for _, flow in corpus)]) == {flow.id}

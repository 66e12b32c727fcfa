"""Flows that were saved elsewhere, and hostile ones, in mitmweb and in the console.

A few files of `flows/`, a recording of a mitmdump that never heard of moontap, and flows whose
model and tools want to run scripts in the page and commands in the terminal: one file, read by one
mitmweb with a Chromium before it, and the hostile ones by one mitmproxy in tmux.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml
from mitmproxy import http, io

from tests.e2e import console, rig, web
from tests.e2e.conftest import Once
from tests.e2e.talk import Talk
from tests.samples import dump
from tests.saved import exchange

FLOWS = (
    "chat-cut-stream",
    "chat-k2-native-ids",
    "chat-restart-colon-whole",
    "claude-code-loses-pairs",
    "claude-code-rewritten",
    "encoding-br",
    "framing-crlf",
    "messages-error-event",
    "messages-orphan-result",
    "sdk-openai",
)
SCRIPT = {
    "steps": [
        {"text": "I look.", "calls": [{"name": "Bash", "arguments": {"command": "pwd"}}]},
        {
            "calls": [
                {"name": "Bash", "arguments": {"command": "ls"}},
                {"name": "Read", "arguments": {"command": "date"}},
            ]
        },
    ],
    "final": "The task is done.",
}

# Hostile flows. What a browser would run, and what a terminal would obey: the title set, the screen
# cleared, red, a C1 control; then a text turned around, NUL, backspace, line separator.
MARKUP = '<script>window.hacked=1</script><img src=x onerror="window.hacked=2">'
OBEYED = "\x1b]0;HACKED\x07\x1b[2J\x1b[31mHACKED\x9b31m"
EVIL = f"{MARKUP}{OBEYED}\u202egnirts\u2066\x00\x08\r\u2028"
CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
LONG = 10_000_000
TAIL = "the end of it"


def events(*said: dict[str, Any]) -> bytes:
    return b"".join(b"event: %s\ndata: %s\n\n" % (one["type"].encode(), dump(one)) for one in said)


def reply(text: str, *calls: tuple[str, str, str]) -> bytes:
    """A streamed reply. calls: id, name, arguments as they stand."""
    message = {"id": f"msg_{EVIL}", "role": "assistant", "model": EVIL, "content": []}
    said: list[dict[str, Any]] = [{"type": "message_start", "message": message}]
    blocks: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"type": "text", "text": ""}, {"type": "text_delta", "text": text})
    ]
    for id_, name, arguments in calls:
        use = {"type": "tool_use", "id": id_, "name": name, "input": {}}
        blocks.append((use, {"type": "input_json_delta", "partial_json": arguments}))
    for index, (block, delta) in enumerate(blocks):
        said += [
            {"type": "content_block_start", "index": index, "content_block": block},
            {"type": "content_block_delta", "index": index, "delta": delta},
            {"type": "content_block_stop", "index": index},
        ]
    stop = f"tool_use{EVIL}" if calls else "end_turn"
    said += [{"type": "message_delta", "delta": {"stop_reason": stop}}, {"type": "message_stop"}]
    return events(*said)


def request(*said: dict[str, Any]) -> bytes:
    tools = [{"name": EVIL, "description": EVIL, "input_schema": {"type": "object"}}]
    messages = [{"role": "user", "content": f"go {EVIL}"}, *said]
    return dump({"model": EVIL, "stream": True, "tools": tools, "messages": messages})


def hostile() -> Iterator[http.HTTPFlow]:
    arguments = dump({"command": EVIL}).decode()
    calls = (
        (f"Bash_0{EVIL}", f"Bash{EVIL}", arguments),
        (f"Bash_0{EVIL}", f"Bash{EVIL}", arguments[:-2]),
    )
    uses = [
        {"type": "tool_use", "id": id_, "name": name, "input": {"command": EVIL}}
        for id_, name, _ in calls[:1]
    ]
    result = {"type": "tool_result", "tool_use_id": calls[0][0], "content": f"{EVIL}SPLIT"}
    history = ({"role": "assistant", "content": uses}, {"role": "user", "content": [result]})
    broken = request(*history).replace(b"SPLIT", b"\xff\xfe\xc3(\xed\xa0\x80")
    # The last is no JSON at all, with the bytes of the controls as they are.
    raw = EVIL.encode() + b"\xff\xfe"
    bodies = (
        (request(), reply(EVIL, *calls), "text/event-stream"),
        (broken, reply("x" * LONG + TAIL), "text/event-stream"),
        (raw, raw, "application/json"),
    )
    for number, (sent, got, kind) in enumerate(bodies):
        flow = exchange(sent, got, number=number, session="hostile", kind=kind)
        flow.id = IDS[number]
        yield flow


HOSTILE = 3
IDS = [f"0000000{number}-0000-4000-8000-000000000000" for number in range(HOSTILE)]
TALL = (1600, 2400)  # room for all rows


@dataclass
class Seen:
    """What was shown. views: by flow id and side, as mitmweb gives them to its page; rows: its
    list, calls: what must be there, by flow id, as `(tool, upstream id, id)`.

    texts: all that the page showed of hostile flows; screens: the console's; raw: what it wrote to
    the terminal; title: of that.
    """

    calls: dict[str, list[tuple[str, str, str]]] = field(default_factory=dict)
    views: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    rows: list[web.Row] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    plain: list[str] = field(default_factory=list)
    opened: str = ""
    texts: dict[str, str] = field(default_factory=dict)
    hacked: list[Any] = field(default_factory=list)
    elements: list[int] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)
    screens: dict[str, str] = field(default_factory=dict)
    raw: bytes = b""
    titles: list[str] = field(default_factory=list)


def record_plainly(folder: Path, conf: Path) -> tuple[Path, list[dict[str, Any]]]:
    """What mitmdump saves without moontap, and what the stand-in had answered."""
    file = folder / "plain.flow"
    (port,) = rig.free_ports(1)
    command: list[str | Path] = [Path(sys.executable).with_name("mitmdump"), "-w", file]
    with rig.standin(folder, SCRIPT) as standin:
        command += ["--mode", f"reverse:{standin.url}@127.0.0.1:{port}", "--set", f"confdir={conf}"]
        with rig.running(command, folder, "plain") as process:
            process.wait_for(r" listening at 127\.0\.0\.1:\d+\.")
            with Talk(f"http://127.0.0.1:{port}") as talk:
                talk.to_the_end()
            process.stop()
        return file, standin.received


def read(file: Path) -> list[http.HTTPFlow]:
    with file.open("rb") as source:
        return [one for one in io.FlowReader(source).stream() if isinstance(one, http.HTTPFlow)]


def write(file: Path, flows: Sequence[http.HTTPFlow]) -> Path:
    with file.open("wb") as target:
        writer = io.FlowWriter(target)
        for flow in flows:
            writer.add(flow)
    return file


def calls_of_sheet(name: str) -> Iterator[list[tuple[str, str, str]]]:
    """Of each exchange of a file, as the sheet beside it says."""
    sheet = yaml.safe_load((rig.ROOT / "flows" / f"{name}.yaml").read_text("utf-8"))
    for one in sheet["expect"]["exchanges"]:
        said = [
            re.fullmatch(r'(.*): "(.*?)"(?: -> "(.*)")?', call) for call in one.get("calls", [])
        ]
        assert all(said), one
        yield [(found[1], found[2], found[3] or found[2]) for found in said if found]


def look(folder: Path, conf: Path, chromium: Path, tmux: Path) -> Seen:
    seen = Seen()
    flows: list[http.HTTPFlow] = []
    for name in FLOWS:
        some = read(rig.ROOT / "flows" / f"{name}.flow")
        for flow, calls in zip(some, calls_of_sheet(name), strict=True):
            seen.calls[flow.id] = calls
        flows += some
    file, received = record_plainly(folder, conf)
    for flow, record in zip(read(file), received, strict=True):
        answer = record["answer"]
        step = SCRIPT["steps"][answer["step"]] if answer["kind"] == "step" else {"calls": []}
        names = [call["name"] for call in step["calls"]]
        seen.calls[flow.id] = [
            (name, id_, id_) for name, id_ in zip(names, answer.get("ids", []), strict=True)
        ]
        seen.plain.append(flow.id)
        flows.append(flow)
    evil = list(hostile())
    with ExitStack() as stack:
        hosts = ["--set", "moontap_hosts=127.0.0.1", "--set", "moontap_hosts=api.moonshot.cn"]
        tap = stack.enter_context(
            web.mitmweb(folder, conf, [], "-r", write(folder / "all.flow", [*flows, *evil]), *hosts)
        )
        terminal = stack.enter_context(
            console.mitmproxy(
                tmux, folder, conf, [], "-r", write(folder / "evil.flow", evil), name="hostile"
            )
        )
        rig.wait_until(lambda: len(tap.flows()) == len(flows) + HOSTILE, 20, every=0.1)
        for flow in flows:
            for side in ("request", "response"):
                seen.views[flow.id, side] = tap.view(flow.id, side)
        screen = stack.enter_context(web.screen(chromium, tap, "saved"))
        screen.resize(TALL)
        screen.shows(len(flows) + HOSTILE)
        seen.rows = screen.settled()
        seen.ids = [flow["id"] for flow in tap.flows()]
        seen.opened = screen.open(seen.ids.index(seen.plain[1]) + 1)
        screen.picture("plain")
        screen.resize(TALL)
        look_in_browser(screen, seen)
        look_in_terminal(terminal, seen)
    return seen


def look_in_browser(screen: web.Screen, seen: Seen) -> None:
    def note(what: str, text: str) -> None:
        seen.texts[what] = text
        seen.hacked.append(screen.page.evaluate("window.hacked ?? null"))
        within = "document.querySelectorAll('#mitmproxy script, #mitmproxy img').length"
        seen.elements.append(screen.page.evaluate(within))

    evil = [seen.ids.index(id_) + 1 for id_ in IDS]
    for what, number in enumerate(evil):
        for side in ("Request", "Response"):
            note(f"{what} {side}", screen.open(number, side))
            if what == 0:
                screen.picture(f"hostile-{side.lower()}", web.NARROW)
                screen.resize(TALL)
    screen.open(evil[0])
    note("events", screen.choose("Moontap-events"))
    note("full", screen.choose("Moontap-full"))
    screen.choose("auto")
    screen.tab("Comment")
    note("comment", screen.page.locator("section.timing").inner_text())
    note("list", "\n".join(row.comment for row in screen.rows()))
    screen.bars(True)
    for line in ("moontap.pairs", "moontap.findings"):
        note(line, screen.command(line) + "\n" + screen.events())
    screen.picture("hostile-commands")
    seen.dialogs, seen.strangers = screen.dialogs, screen.strangers


def look_in_terminal(terminal: console.Console, seen: Seen) -> None:
    def note(what: str, shown: str) -> None:
        seen.screens[what] = terminal.keep(what, shown)
        seen.titles.append(terminal.title)

    terminal.shows(r"\[1/3\]", 20)
    note("list", terminal.settled())
    for row in range(HOSTILE):
        terminal.keys("g", *["j"] * row, "Enter")
        terminal.shows("Flow Details")
        for tab in ("request", "response", "detail"):
            note(f"{row} {tab}", terminal.settled())
            terminal.keys("Tab")
        terminal.keys("q")
        terminal.shows("^Flows")
    terminal.keys("g")
    for line in ("moontap.pairs", "moontap.findings"):
        note(line.replace(".", "-"), terminal.command(line))
        terminal.keys("q")
        terminal.shows("^Flows")
    seen.raw = terminal.raw.read_bytes()


@pytest.fixture(scope="module")
def seen(once: Once, conf: Path) -> Seen:
    chromium, tmux = web.chromium(), console.tmux()
    return once("looking-saved", lambda folder: look(folder, conf, chromium, tmux))


def test_every_saved_flow_has_its_views(seen: Seen) -> None:
    names = {(side, view["view_name"]) for (_, side), view in seen.views.items()}
    assert names == {("request", "Moontap-request"), ("response", "Moontap-reply")}
    raw = [one for one, view in seen.views.items() if "shown raw" in view["text"]]
    assert raw == []


def test_every_call_shows_with_both_ids(seen: Seen) -> None:
    assert sum(map(len, seen.calls.values())) > 40
    for flow, calls in seen.calls.items():
        shown = seen.views[flow, "response"]["text"]
        found = re.findall(r"^ *call: (.*)\n +id: (\S+).*\n +upstream id: (\S+)", shown, re.M)
        assert [(tool, upstream, id_) for tool, id_, upstream in found] == calls, shown


def test_every_request_is_a_conversation_with_what_is_new_first(seen: Seen) -> None:
    for (_, side), view in seen.views.items():
        if side == "request":
            assert re.match(r"request: .*\n(?:.*\n)*?history: .*\n\nnew: ", view["text"]), view[
                "text"
            ]


def test_what_moontap_did_not_record_reads_as_well(seen: Seen) -> None:
    assert len(seen.plain) == 3
    rows = [row for row in seen.rows if seen.ids[row.number - 1] in seen.plain]
    assert [row.comment.split(" · ")[0] for row in rows] == ["Bash", "Bash, Read", "only text"]
    assert [row.mark for row in rows] == ["", "🔴", ""]
    assert seen.opened.split() == seen.views[seen.plain[1], "response"]["text"].split()
    assert "used before in this conversation" in seen.opened


def test_every_row_of_the_list_says_something(seen: Seen) -> None:
    silent = [seen.ids[row.number - 1] for row in seen.rows if not row.comment]
    assert silent == IDS[2:]  # which is no request at all
    assert len(seen.rows) == len(seen.ids)


def test_nothing_runs_in_the_browser(seen: Seen) -> None:
    assert set(seen.hacked) == {None}
    assert set(seen.elements) == {0}
    assert (seen.dialogs, seen.strangers) == ([], [])


SHOWN = ("0 Request", "0 Response", "1 Request", "2 Request", "2 Response", "events", "full")


@pytest.mark.parametrize("what", SHOWN)
def test_hostile_text_is_shown_as_it_is(seen: Seen, what: str) -> None:
    shown = " ".join(seen.texts[what].split())
    assert "<script>window.hacked=1</script>" in shown, shown


@pytest.mark.parametrize("what", [*SHOWN, "1 Response", "comment", "list", "moontap.pairs"])
def test_no_control_character_reaches_the_page(seen: Seen, what: str) -> None:
    assert seen.texts[what].strip()
    assert CONTROLS.findall(seen.texts[what]) == []


def test_ten_megabytes_of_one_line_are_folded_with_their_end(seen: Seen) -> None:
    shown = seen.texts["1 Response"]
    assert len(shown) < 5_000
    assert TAIL in shown
    assert "left out" in shown


def test_broken_utf_8_is_no_reason_not_to_read_a_request(seen: Seen) -> None:
    assert "shown raw" not in seen.texts["1 Request"]
    assert "result: ok" in seen.texts["1 Request"]


def test_a_body_that_is_nothing_is_shown_raw_with_the_reason(seen: Seen) -> None:
    assert "shown raw: not a Messages request" in seen.texts["2 Request"]


def test_the_terminal_obeys_nobody_but_mitmproxy(seen: Seen) -> None:
    assert b"HACKED" in seen.raw  # it was shown
    for sent in (b"\x1b]0;", b"\x1b[31mHACKED", b"\x9b31", b"\x1b[2J\x1b[31m"):
        assert sent not in seen.raw
    for character in "\u202e\u2066\x00\x08":
        assert character.encode() not in seen.raw
    assert "HACKED" not in seen.titles


@pytest.mark.parametrize("row", range(HOSTILE))
@pytest.mark.parametrize("tab", ["request", "response", "detail"])
def test_the_screen_stays_whole(seen: Seen, row: int, tab: str) -> None:
    shown = seen.screens[f"{row} {tab}"]
    assert shown.startswith("Flow Details")
    assert "Proxy:   ? Help" in shown
    if tab != "detail":
        assert "Moontap-re" in shown
        assert "\\x1b" in shown or (row, tab) == (1, "response"), shown

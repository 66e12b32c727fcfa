"""mitmweb as a person sees it in Chromium, while an OpenAI SDK program and Claude Code run.

One mitmweb, one browser, one look: first without rewriting, where the SDK program loses calls, then
`moontap.rewrite all` is typed into the page and Claude Code does its task slowly. What the page
showed is kept, and each test looks at a part of it. What must be shown is told by the capture.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import rig, web
from tests.e2e.conftest import Once
from tests.e2e.web import NARROW, Row, Screen


def bash(command: str, about: str = "test") -> dict[str, Any]:
    return {"name": "Bash", "arguments": {"command": command, "description": about}}


LONG = "The arguments of this call take a while to come. " * 6
SCRIPT = {
    "steps": [
        {
            "thinking": "Where am I, and what is here to be seen?",
            "text": "I look around in the folder, and then I say what is there.",
            "calls": [bash("echo one", LONG)],
        },
        {"text": "Two things at once.", "calls": [bash("echo two"), bash("echo three")]},
        {"calls": [bash("echo four")]},
    ],
    "final": "The task is done.",
    # Slow enough to be seen: the first reply takes two seconds.
    "pacing": {"event_ms": 60, "delta_chars": 12},
}
KEY = "made-up-key-of-the-tests"
MINE = "look at this one again"


@dataclass
class Command:
    """What came of a command: its result on the page, and the event log then."""

    result: str
    log: str


@dataclass
class Seen:
    """What the page showed. samples: the comments by row number whenever one had changed, while
    Claude Code ran. looped: the rows when the SDK program was done; rows: at the end.

    narrowed: the numbers of the rows that a filter left. views: texts of content views by what was
    opened. live: the reply view of a stream under way. ids: flow ids in the order of the list.
    received: the stand-in's record, in the same order. pairs, findings: of the capture then.
    """

    captures: Path
    looped: list[Row] = field(default_factory=list)
    samples: list[dict[int, str]] = field(default_factory=list)
    live: str = ""
    rows: list[Row] = field(default_factory=list)
    narrowed: dict[str, list[int]] = field(default_factory=dict)
    counted: dict[str, int] = field(default_factory=dict)
    views: dict[str, str] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    commands: dict[str, Command] = field(default_factory=dict)
    noted: list[Row] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    received: list[dict[str, Any]] = field(default_factory=list)
    pairs: list[dict[str, Any]] = field(default_factory=list)
    findings: list[dict[str, Any]] = field(default_factory=list)
    agents: dict[str, str] = field(default_factory=dict)
    dialogs: list[str] = field(default_factory=list)
    strangers: list[str] = field(default_factory=list)

    # What must be shown: by the capture as it stood then, and by the stand-in's own record

    def number(self, flow: str) -> int:
        return self.ids.index(flow) + 1

    def upstream_ids(self, number: int) -> list[str]:
        """Of the calls in the reply of a row."""
        ids: list[str] = self.received[number - 1]["answer"].get("ids", [])
        return ids

    def calling(self, wanted: Callable[[list[str]], object]) -> list[int]:
        """The rows whose calls are so, by the ids that upstream gave them."""
        return [n for n in range(1, len(self.ids) + 1) if wanted(self.upstream_ids(n))]

    def paired(self, wanted: Callable[[dict[str, Any]], object]) -> list[int]:
        """The rows with a pair of that kind."""
        return sorted({self.number(pair["call_flow"]) for pair in self.pairs if wanted(pair)})

    def found(self, wanted: Callable[[dict[str, Any]], object]) -> list[int]:
        return sorted({self.number(line["flow"]) for line in self.findings if wanted(line)})

    def row(self, number: int) -> Row:
        return next(row for row in self.rows if row.number == number)


type Wanted = Callable[[Seen], list[int]]


def unanswered(seen: Seen) -> list[int]:
    return seen.paired(lambda pair: pair["status"] == "unanswered")


def rewritten(seen: Seen) -> list[int]:
    return seen.paired(lambda pair: pair["rewritten"])


def bad(seen: Seen) -> list[int]:
    return seen.found(lambda line: line["severity"] == "error")


# Typed into the search box.
TYPED: dict[str, Wanted] = {
    "~marker red_circle": bad,
    "~comment rewritten": rewritten,
    "~comment unanswered": unanswered,
    "~meta tool=Bash": lambda seen: seen.calling(bool),
    "~meta id=Bash:1;": lambda seen: seen.calling(lambda ids: "Bash:1" in ids),
    "~meta id=Bash_1;": lambda seen: seen.calling(lambda ids: "Bash_1" in ids),
    "~meta id=Bash_1_": lambda seen: seen.paired(lambda pair: pair["id"].startswith("Bash_1_")),
    "~meta rewritten=": rewritten,
    "~meta unanswered=": unanswered,
    "~meta finding=id-reused;": lambda seen: seen.found(lambda one: one["code"] == "id-reused"),
    "~meta severity=error & !~marker yellow": bad,
}
# Typed into the command bar: `view.filter.set "…"`.
SET: dict[str, Wanted] = {"~meta id=Bash_0; & ~meta rewritten=": rewritten}


def look(folder: Path, conf: Path, claude: Path, chromium: Path) -> Seen:
    with ExitStack() as stack:
        standin = stack.enter_context(rig.standin(folder, SCRIPT))
        tap = stack.enter_context(web.mitmweb(folder, conf, [f"reverse:{standin.url}"]))
        screen = stack.enter_context(web.screen(chromium, tap, "web"))
        seen = Seen(tap.captures)
        url = tap.urls[0]

        env = {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": KEY}
        program: list[str | Path] = [
            sys.executable,
            rig.HERE / "clients" / "sdk_agent.py",
            "openai",
        ]
        with rig.running(program, folder, "openai", env) as agent:
            screen.until(lambda: agent.code is not None, 40)
            seen.agents["openai"] = agent.output
        seen.looped = screen.settled()
        screen.picture("looped", NARROW)

        screen.bars(True)
        type_command(screen, seen, "moontap.rewrite all")
        screen.bars(False)
        screen.tab("Flow List")
        with rig.claude(claude, f"{url}/anthropic", folder) as client:
            watch(screen, seen, lambda: client.process.code is not None)
            seen.agents["claude"] = client.process.output
        seen.rows = screen.settled()
        seen.ids = [flow["id"] for flow in tap.flows()]
        seen.received = standin.received
        seen.pairs = rig.saved_pairs(seen.captures)
        seen.findings = rig.saved_findings(seen.captures)
        screen.picture("list", NARROW)

        for words in (*TYPED, ""):
            seen.narrowed[words] = [row.number for row in screen.search(words)]
            if words == "~meta rewritten=":
                screen.picture("filter", NARROW)
        look_at_views(screen, seen)
        screen.bars(True)
        look_at_commands(screen, seen, folder)
        look_at_filters(screen, seen, tap)
        seen.dialogs, seen.strangers = screen.dialogs, screen.strangers
        tap.process.stop()
        return seen


def watch(screen: Screen, seen: Seen, ended: Callable[[], bool]) -> None:
    """Look at the list as a run goes on, and once into a reply that is still coming: the page that
    is open grows with it."""
    end = time.monotonic() + 40
    first, opened = len(seen.looped), False
    while not ended() and time.monotonic() < end:
        comments = {row.number: row.comment for row in screen.rows() if row.number > first}
        if not seen.samples or seen.samples[-1] != comments:
            seen.samples.append(comments)
        coming = [n for n, comment in comments.items() if comment.startswith("streaming")]
        if coming and not opened:
            screen.open(coming[0])
            opened = True
        if opened and not seen.live:
            shown = screen.shown()
            if "call: Bash" in shown:
                seen.live = shown
                screen.picture("streaming")
                screen.tab("Flow List")
        screen.page.wait_for_timeout(50)


def look_at_views(screen: Screen, seen: Seen) -> None:
    """One exchange of the run that lost calls, one of that with rewritten ids."""
    for name, number in {"looped": 2, "rewritten": 12}.items():
        for tab in ("Response", "Request"):
            what = f"{name} {tab}".lower()
            seen.views[what] = screen.open(number, tab)
            seen.names[what] = screen.view
            screen.picture(what.replace(" ", "-"), NARROW)
    screen.tab("Response")
    for view in ("Moontap-events", "Moontap-full"):
        seen.views[view] = screen.choose(view)
        screen.picture(view.lower())
    screen.choose("auto")  # mitmweb keeps what was chosen, for every exchange


def look_at_commands(screen: Screen, seen: Seen, folder: Path) -> None:
    screen.open(seen.looped[0].number)
    screen.note(MINE)
    for line in (
        "moontap.pairs @all",
        "moontap.findings @all",
        "moontap.conversation",
        "moontap.curl",
        f"moontap.cut @all {folder / 'cut.flow'}",
        "moontap.rewrite off",
        "moontap.rewrite sideways",
    ):
        type_command(screen, seen, line)
    seen.noted = screen.settled()


def look_at_filters(screen: Screen, seen: Seen, tap: web.Web) -> None:
    """The page numbers the rows anew then: mitmweb's list tells which they are."""
    for words in (*SET, ""):
        screen.command(f'view.filter.set "{words}"')
        flows = [flow["id"] for flow in tap.flows()]
        screen.shows(len(flows))
        seen.narrowed[words] = list(map(seen.number, flows))
        seen.counted[words] = len(screen.rows())


def type_command(screen: Screen, seen: Seen, line: str) -> None:
    name = " ".join(word for word in line.split() if not word.startswith("/"))
    seen.commands[name] = command = Command(screen.command(line), "")
    _, wanted = SAID.get(name, ("", ""))

    def told() -> bool:
        command.log = screen.events()
        return re.search(wanted, command.log) is not None

    screen.until(told)
    if name.endswith("@all"):
        screen.picture(re.sub(r"\W+", "-", name), NARROW)


@pytest.fixture(scope="module")
def seen(once: Once, conf: Path, claude_program: Path) -> Seen:
    chromium = web.chromium()
    return once("mitmweb", lambda folder: look(folder, conf, claude_program, chromium))


def test_both_agents_did_what_they_do(seen: Seen) -> None:
    assert seen.agents["openai"].count("given up after") == 2
    assert seen.agents["claude"].rstrip().endswith("The task is done.")
    assert (len(seen.looped), len(seen.rows)) == (10, 14)


def test_the_page_opens_no_window_and_asks_nobody_else(seen: Seen) -> None:
    assert (seen.dialogs, seen.strangers) == ([], [])


def test_a_comment_grows_while_a_reply_comes(seen: Seen) -> None:
    first = len(seen.looped) + 1
    steps = [sample[first] for sample in seen.samples if first in sample]
    kinds = [
        next(n for n, kind in enumerate(GROWING) if re.fullmatch(kind, step)) for step in steps
    ]
    assert kinds == sorted(kinds), steps
    assert {1, 2} <= set(kinds), f"not seen while it came: {steps}"
    assert re.fullmatch(GROWING[-1], seen.row(first).comment)


# What the comment of a reply with one call says, in this order.
GROWING = (
    "",
    "streaming",
    "streaming: Bash",
    "Bash · no result yet · 1 id rewritten",
    r"Bash · answered in [\d.]+ m?s · 1 id rewritten",
)


def test_a_reply_can_be_read_while_it_comes(seen: Seen) -> None:
    assert "still coming" in seen.live
    assert "I look around in the folder" in seen.live
    assert re.search(r"^call: Bash$", seen.live, re.M)


def test_the_comments_say_what_was_called_and_what_became_of_it(seen: Seen) -> None:
    for n in range(1, len(seen.ids) + 1):
        comment, calls = seen.row(n).comment, len(seen.upstream_ids(n))
        first = {0: "only text", 1: "Bash", 2: "Bash ×2"}[calls]
        assert comment.split(" · ")[0] == first, comment
        assert ("unanswered" in comment) == (n in unanswered(seen)), comment
        said = re.search(r"(\d) ids? rewritten", comment)
        assert (int(said[1]) if said else 0) == (calls if n > len(seen.looped) else 0), comment
    assert seen.row(14).comment == "only text · end_turn"


@pytest.mark.parametrize(("mark", "severity"), [("🔴", "error"), ("🟡", "warning")])
def test_the_marks_say_how_bad_it_is(seen: Seen, mark: str, severity: str) -> None:
    wanted = seen.found(lambda line: line["severity"] == severity)
    if severity != "error":
        wanted = [number for number in wanted if number not in bad(seen)]
    assert wanted
    assert [row.number for row in seen.rows if row.mark == mark] == wanted


def test_marks_and_comments_are_there_before_the_next_agent_begins(seen: Seen) -> None:
    assert [row for row in seen.looped if not row.comment] == []
    assert [row.mark for row in seen.looped] == [row.mark for row in seen.rows[:10]]


@pytest.mark.parametrize("words", [*TYPED, *SET])
def test_a_filter_leaves_the_right_rows(seen: Seen, words: str) -> None:
    wanted = {**TYPED, **SET}[words](seen)
    assert 0 < len(wanted) < len(seen.ids)
    assert seen.narrowed[words] == wanted
    assert seen.counted.get(words, len(wanted)) == len(wanted)


def test_an_empty_search_shows_all_again(seen: Seen) -> None:
    assert len(seen.narrowed[""]) == seen.counted[""] == len(seen.rows)


@pytest.mark.parametrize("what", ["looped", "rewritten"])
def test_the_views_are_chosen_by_themselves(seen: Seen, what: str) -> None:
    assert seen.names[f"{what} response"] == "Moontap-reply"
    assert seen.names[f"{what} request"] == "Moontap-request"


@pytest.mark.parametrize("view", ["rewritten response", "Moontap-full"])
def test_a_rewritten_call_shows_with_both_ids(seen: Seen, view: str) -> None:
    for call in ("Bash_0", "Bash_1"):
        pattern = rf"call: Bash\n  id: {call}_\w+\n  upstream id: {call}  # rewritten"
        assert re.search(pattern, seen.views[view]), seen.views[view]
    assert "stop: tool_use" in seen.views[view]
    assert '"command": "echo two"' in seen.views[view]


def test_an_id_that_came_again_is_marked_in_the_reply(seen: Seen) -> None:
    shown = seen.views["looped response"]
    assert re.search(r"id: Bash:0\n.*upstream id: Bash:0 .*used before", shown), shown
    assert not re.search(r"upstream id: Bash:1 .*used before", shown), shown
    assert "error id-reused" in shown


def test_the_request_shows_results_under_their_calls(seen: Seen) -> None:
    shown = seen.views["rewritten request"]
    new, _, before = shown.partition("\nbefore: ")
    assert before, shown
    call = r"^ +call: Bash\n +id: Bash_0_\w+\n +arguments:(?:.*\n)+? +result: ok .*\n +one$"
    assert re.search(call, new[new.index("\nnew: ") :], re.M), shown


def test_the_events_are_a_view_of_their_own(seen: Seen) -> None:
    shown = seen.views["Moontap-events"]
    for word in ("message_start", "content_block_start", "message_stop", "Bash_1_"):
        assert word in shown, shown


# What a command says as its result, and what stands in the event log then.
SAID: dict[str, tuple[str, str]] = {
    "moontap.pairs @all": (r"22 pairs\b.*pairs-\w+\.txt", r"echo four"),
    "moontap.findings @all": (
        r"findings\b.*id-reused.*findings-\w+\.txt",
        r"see: docs/findings\.md",
    ),
    "moontap.conversation": (r"5 flows of one conversation", ""),
    "moontap.curl": (r"OPENAI_API_KEY.*bash .*curl-\w+\.sh", r"--data-binary"),
    "moontap.cut @all": (r"14 exchanges\b.*cut\.flow", r"14 exchanges"),
    "moontap.rewrite all": (r"all, from the next request on", r"every id becomes unique"),
    "moontap.rewrite off": (r"off, from the next request on", ""),
    "moontap.rewrite sideways": (r"not one of off, duplicates, all", ""),
}


@pytest.mark.parametrize("line", SAID)
def test_a_command_says_what_it_did(seen: Seen, line: str) -> None:
    result, log = SAID[line]
    assert re.search(result, seen.commands[line].result), seen.commands[line].result
    assert re.search(log, seen.commands[line].log), seen.commands[line].log


def test_files_of_commands_are_ours_alone_and_hold_no_key(seen: Seen) -> None:
    files = sorted(rig.run_folder(seen.captures).iterdir())
    files.append(seen.captures.parent / "cut.flow")
    assert {file.suffix for file in files} >= {".txt", ".sh", ".flow"}
    for file in files:
        assert file.stat().st_mode & 0o777 == 0o600, file
        data = file.read_bytes()
        assert KEY.encode() not in data, file
        assert rig.CLAUDE_ENV["ANTHROPIC_AUTH_TOKEN"].encode() not in data, file


def test_what_a_person_typed_stays_and_a_conversation_is_marked(seen: Seen) -> None:
    assert seen.noted[0].comment == MINE
    assert [row.number for row in seen.noted if row.mark == "💬"] == [1, 2, 3, 4, 5]
    (first, *_) = rig.saved_flows(seen.captures)
    assert first.comment == ""  # it was saved before that

"""mitmproxy's console in tmux, as a person sees it: the list, the views, filters, commands.

One mitmproxy, one look: a client talks to a stand-in that reuses ids, then `moontap.rewrite all` is
typed and the real Claude Code does its task. What the screen showed is kept, and each test looks at
a part of it. The console's list shows marks; comments stand in the details of a flow.
"""

from __future__ import annotations

import re
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import console, rig
from tests.e2e.conftest import Once
from tests.e2e.console import NARROW, WIDE, Console
from tests.e2e.talk import Talk


def bash(command: str) -> dict[str, Any]:
    return {"name": "Bash", "arguments": {"command": command, "description": "test"}}


SCRIPT = {
    "steps": [
        {"thinking": "Where am I?", "text": "I look.", "calls": [bash("echo one")]},
        {"text": "Two things at once.", "calls": [bash("echo two"), bash("echo three")]},
    ],
    "final": "The task is done.",
}
ROWS = 6  # three requests of each client
MINE = "look at this one again"


@dataclass
class Seen:
    """What the screen showed. lists: the list by when; views: content views by what was opened;
    filters: the list under a filter; commands: the screen after a command; narrow: the same in a
    terminal of 80 columns. during: how many rows there were, as Claude Code ran."""

    captures: Path
    lists: dict[str, str] = field(default_factory=dict)
    views: dict[str, str] = field(default_factory=dict)
    filters: dict[str, str] = field(default_factory=dict)
    commands: dict[str, str] = field(default_factory=dict)
    narrow: dict[str, str] = field(default_factory=dict)
    during: list[int] = field(default_factory=list)
    said: str = ""
    findings: list[dict[str, Any]] = field(default_factory=list)


def rows(screen: str) -> list[str]:
    """The lines of the list."""
    return re.findall(r"^(?:>>|  )\d\d:\d\d:\d\d .*$", screen, re.M)


# Typed at the prompt of `f`, which stands within quotes: a backslash would be lost. The rows left.
FILTERS: dict[str, list[int]] = {
    "~meta tool=Bash": [1, 2, 4, 5],
    "~meta id=Bash_1;": [2, 5],
    "~meta rewritten=": [4, 5],
    "~meta id=Bash_1_": [5],
    "~meta finding=id-reused & !~meta rewritten=": [2],
    "~marked": [2],
    "~comment end_turn": [3, 6],
}


def look(folder: Path, conf: Path, claude: Path, tmux: Path) -> Seen:
    with ExitStack() as stack:
        standin = stack.enter_context(rig.standin(folder, SCRIPT))
        screen = stack.enter_context(
            console.mitmproxy(tmux, folder, conf, [f"reverse:{standin.url}"])
        )
        seen = Seen(screen.captures)
        with Talk(screen.urls[0]) as talk:
            talk.to_the_end()
        screen.until(lambda shown: len(rows(shown)) == 3)
        seen.lists["before"] = screen.keep("before", screen.settled())
        seen.commands["moontap.rewrite all"] = screen.command("moontap.rewrite all")
        screen.keys("q")

        with rig.claude(claude, f"{screen.urls[0]}/anthropic", folder) as client:
            while client.process.code is None:
                seen.during.append(len(rows(screen.until(lambda shown: True))))
                rig.wait_until(lambda: client.process.code is not None, 0.2)
            seen.said = client.process.output
        screen.until(lambda shown: len(rows(shown)) == ROWS)
        seen.lists["after"] = screen.keep("list", screen.settled())
        seen.findings = rig.saved_findings(seen.captures)

        look_at_views(screen, seen)
        look_at_filters(screen, seen)
        look_at_commands(screen, seen)
        look_narrow(screen, seen)
        return seen


def look_at_views(screen: Console, seen: Seen) -> None:
    """The row with two calls and rewritten ids; request, response and details are side by side."""
    go_to(screen, 5)
    screen.keys("Enter")
    seen.views["request"] = screen.shows("Moontap-request")
    screen.keys("Tab")
    seen.views["response"] = screen.shows("Moontap-reply")
    screen.keys("Tab")
    seen.views["detail"] = screen.shows("Comment:")
    for what, shown in seen.views.items():
        screen.keep(what, shown)
    screen.keys("q")
    screen.shows("^Flows")


def go_to(screen: Console, row: int) -> None:
    screen.keys("g", *["j"] * (row - 1))
    screen.shows(rf"\[{row}/{ROWS}\]")  # the foot of the list


def look_at_filters(screen: Console, seen: Seen) -> None:
    for words in FILTERS:
        screen.keys("f")
        screen.shows("(?m)^: set view_filter ''")
        screen.type(words)
        screen.keys("Enter")
        screen.shows(r"\[f:~")
        seen.filters[words] = screen.settled()
        screen.command("set view_filter ''")
    screen.keep("filter", seen.filters["~meta rewritten="])


def look_at_commands(screen: Console, seen: Seen) -> None:
    go_to(screen, 2)
    for line in ("moontap.pairs @all", "moontap.findings", "moontap.curl"):
        shown = seen.commands[line] = screen.command(line)
        screen.keep(re.sub(r"\W+", "-", line), shown)
        screen.keys("q")
        screen.shows("^Flows")
    screen.command(f"flow.comment @focus '{MINE}'")
    screen.keys("Enter")
    seen.views["noted"] = screen.shows("Comment:")
    screen.keys("q")
    screen.shows("^Flows")
    go_to(screen, 1)
    screen.keys("m")
    seen.commands["moontap.conversation"] = screen.command("moontap.conversation")
    screen.keys("q")
    seen.lists["marked"] = screen.keep("marked", screen.settled())


def look_narrow(screen: Console, seen: Seen) -> None:
    seen.narrow["list"] = screen.resize(NARROW)
    go_to(screen, 5)
    screen.keys("Enter")
    screen.shows("Flow Details")
    screen.keys("Tab", "Tab")  # it opens where it was left, at the details
    seen.narrow["response"] = screen.shows("Moontap-reply")
    screen.keys("q")
    screen.shows("^Flows")
    seen.narrow["pairs"] = screen.command("moontap.pairs @all")
    for what, shown in seen.narrow.items():
        screen.keep(what, shown)
    screen.keys("q")
    screen.resize(WIDE)


@pytest.fixture(scope="module")
def seen(once: Once, conf: Path, claude_program: Path) -> Seen:
    tmux = console.tmux()
    return once("console", lambda folder: look(folder, conf, claude_program, tmux))


def test_the_list_grows_as_the_agent_works(seen: Seen) -> None:
    assert seen.said.rstrip().endswith("The task is done.")
    assert seen.during == sorted(seen.during)
    assert len(rows(seen.lists["before"])) == 3
    assert len(rows(seen.lists["after"])) == ROWS


def test_the_list_marks_what_needs_a_look(seen: Seen) -> None:
    errors = {line["flow"] for line in seen.findings if line["severity"] == "error"}
    assert len(errors) == 1
    assert ["🔴" in row for row in rows(seen.lists["before"])] == [False, True, False]
    assert [n for n, row in enumerate(rows(seen.lists["after"]), 1) if "🔴" in row] == [2]


def test_the_details_hold_the_comment_and_the_words_to_filter_by(seen: Seen) -> None:
    shown = seen.views["detail"]
    assert re.search(r"Comment: Bash ×2 · answered in .* s · 2 ids rewritten", shown), shown
    assert re.search(r"moontap\.labels +'tool=Bash; id=Bash_0; id=Bash_0_\w+; ", shown), shown


def test_the_reply_shows_both_ids(seen: Seen) -> None:
    for call in ("Bash_0", "Bash_1"):
        pattern = rf"call: Bash *\n +id: {call}_\w+ *\n +upstream id: {call} +# rewritten"
        assert re.search(pattern, seen.views["response"]), seen.views["response"]


def test_the_request_is_read_as_a_conversation(seen: Seen) -> None:
    assert re.search(r"^request: kimi-k3, streamed, 4 messages", seen.views["request"], re.M)
    assert re.search(r"^history: fits together", seen.views["request"], re.M)


@pytest.mark.parametrize("words", FILTERS)
def test_a_filter_leaves_the_right_rows(seen: Seen, words: str) -> None:
    times = [re.sub("^..", "", row) for row in rows(seen.lists["after"])]
    left = [re.sub("^..", "", row) for row in rows(seen.filters[words])]
    assert left == [times[number - 1] for number in FILTERS[words]]


# What stands on the screen after a command.
SAID = {
    "moontap.rewrite all": ("all, from the next request on",),
    "moontap.pairs @all": ("6 pairs", "Bash_1 → Bash_1_", "→ result 2 of echo two", "→ three"),
    "moontap.findings": ("id-reused", "moontap run", "docs/findings.md#id-reused"),
    "moontap.curl": ("curl -sSN", "END_OF_BODY", "/anthropic/v1/messages"),
    "moontap.conversation": ("3 flows of one conversation", "~marker speech"),
}


@pytest.mark.parametrize("line", SAID)
def test_a_command_says_what_it_did(seen: Seen, line: str) -> None:
    shown = seen.commands[line]
    assert [words for words in SAID[line] if words not in shown] == [], shown


def test_what_a_person_set_stays(seen: Seen) -> None:
    """A mark of one's own under the conversation's marks, a comment under all that came later."""
    marked = rows(seen.lists["marked"])
    assert marked[0].rstrip().endswith("●")
    assert ["💬" in row for row in marked] == [False, True, True, False, False, False]
    assert f"Comment: {MINE}" in seen.views["noted"]


def test_it_can_be_used_in_80_columns(seen: Seen) -> None:
    assert all(len(line) <= 80 for shown in seen.narrow.values() for line in shown.splitlines())
    assert "calls: Bash ×2" in seen.narrow["response"]
    assert "6 pairs" in seen.narrow["pairs"]
    assert "Bash_1 → Bash_1_" in seen.narrow["pairs"]

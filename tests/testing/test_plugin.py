"""The plugin as a person has it: pytest as a process of its own, in a project of its own."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.testing.projects import Project

AGENT = """
from moontap.demo import agent

TOOLS = {"pwd": lambda arguments: "/work"}

def ask(url, question="where am I?", turns=5):
    made = list(agent.turns(url, TOOLS, question, turns))
    return made[-1].text
"""

REPLAYED = """
from agent import ask

def test_sync(moontap_replay):
    replay = moontap_replay("session.flow", once=False)
    assert replay.anthropic_url == f"{replay}/anthropic"
    assert replay.openai_url == f"{replay.url}/v1"
    ask(replay.anthropic_url, turns=2)
    assert [one.path for one in replay.requests] == ["/anthropic/v1/messages"] * 2
    assert len(replay.unserved) == 1
    assert not replay.unmatched

def test_tapped(moontap_replay, moontap_tap):
    from moontap.testing import (
        assert_all_paired, assert_no_findings, assert_same_calls, assert_unique_ids
    )
    replay = moontap_replay("session.flow")
    tap = moontap_tap(replay)
    assert tap.pairs == [] and tap.flows == [] and tap.folder is None
    assert ask(tap.anthropic_url) == "You are in /work."
    assert [line["status"] for line in tap.pairs] == ["ok", "ok"]
    assert [flow.response.status_code for flow in tap.flows] == [200] * 3
    assert_all_paired(tap, at_least=2)
    assert_unique_ids(tap)
    assert_no_findings(tap)
    assert all(one["severity"] == "info" for one in tap.findings)
    assert_same_calls(tap, replay.flow)
    assert replay.unserved == []
"""

ASYNC = """
import asyncio
from agent import ask

async def test_async(moontap_replay, moontap_tap):
    tap = moontap_tap(moontap_replay("session.flow"))
    assert await asyncio.to_thread(ask, tap.anthropic_url) == "You are in /work."
    assert len(tap.pairs) == 2
"""


@pytest.fixture
def flows(project: Project, session_flow: Path) -> Project:
    """A project with an agent and a recorded session."""
    shutil.copy(session_flow, project.folder / "session.flow")
    project.write(agent=AGENT)
    return project


# idle unless used

UNRELATED = """
import sys

def test_nothing_of_moontap_is_loaded():
    heavy = {"mitmproxy", "hypercorn", "rich", "yaml", "msgspec", "moontap.testing.session"}
    assert "moontap.testing.plugin" in sys.modules
    assert not heavy & set(sys.modules)
"""


def test_an_unrelated_project_loads_nothing(project: Project) -> None:
    project.write(test_it=UNRELATED)
    ended = replace(project, forks=None).pytest()
    assert ended.code == 0, ended.output
    assert ended.counts == {"passed": 1}


def test_it_costs_an_unrelated_project_little(project: Project) -> None:
    """20 ms; the best of a few, because a machine that tests is busy."""
    code = (
        "import pytest, time; start = time.perf_counter(); import moontap.testing.plugin; "
        "print(time.perf_counter() - start)"
    )
    best = min(
        float(
            subprocess.run(
                [sys.executable, "-c", code],
                env=project.env(),
                capture_output=True,
                text=True,
                check=True,
            ).stdout
        )
        for _ in range(5)
    )
    assert best < 0.02


# playing


@pytest.mark.parametrize("arguments", [("-p", "no:asyncio", "-p", "no:anyio"), ("-n", "2")])
def test_a_session_is_played(arguments: tuple[str, ...], flows: Project) -> None:
    flows.write(test_it=REPLAYED)
    ended = flows.pytest(*arguments)
    assert ended.code == 0, ended.output
    assert ended.counts == {"passed": 2}


def test_asynchronous_tests(flows: Project) -> None:
    flows.write(test_it=ASYNC)
    ended = flows.pytest("-o", "asyncio_mode=auto")
    assert (ended.code, ended.counts.get("passed")) == (0, 1), ended.output


FRONTS = """
import pytest
from agent import ask

@pytest.mark.parametrize("named", ["itself", "its text", "a base URL", "another tap"])
def test_before_what_a_tap_is_put(named, moontap_replay, moontap_tap):
    replay = moontap_replay("session.flow")
    tap = moontap_tap({
        "itself": lambda: replay,
        "its text": lambda: str(replay),
        "a base URL": lambda: replay.anthropic_url,
        "another tap": lambda: moontap_tap(replay, rewrite="off"),
    }[named]())
    assert ask(tap.anthropic_url) == "You are in /work."
    assert tap.openai_url == f"{tap.url}/v1"
    assert len(replay.requests) == 3
"""


def test_before_what_a_tap_is_put(flows: Project) -> None:
    flows.write(test_it=FRONTS)
    ended = flows.pytest()
    assert (ended.code, ended.counts) == (0, {"passed": 4}), ended.output


RESULTS = """
import agent

def ask(url):
    agent.TOOLS["pwd"] = lambda arguments: "/elsewhere"
    try:
        agent.ask(url)
    except OSError:
        pass

def test_any(moontap_replay, moontap_tap):
    replay = moontap_replay("session.flow", any_result=True)
    tap = moontap_tap(replay)
    ask(tap.anthropic_url)
    assert [line["result"] for line in tap.pairs] == ["/elsewhere"] * 2
    assert replay.unserved == []

def test_the_recorded(moontap_replay):
    ask(moontap_replay("session.flow").anthropic_url)
"""


def test_tools_may_answer_something_else_where_that_is_allowed(flows: Project) -> None:
    flows.write(test_it=RESULTS)
    ended = flows.pytest()
    assert (ended.code, ended.counts) == (1, {"failed": 1, "passed": 1}), ended.output
    assert "tool result: recorded '/work', now '/elsewhere'" in ended.output
    assert "Or any tool result may do: any_result=True." in ended.output


UNMATCHED = """
import pytest
from agent import ask

def other(replay):
    try:
        ask(replay.anthropic_url, "something else")
    except OSError:
        pass  # as agents do

def test_strict(moontap_replay):
    other(moontap_replay("session.flow"))

def test_not_strict(moontap_replay):
    replay = moontap_replay("session.flow", strict=False)
    other(replay)
    assert len(replay.unmatched) == 1

def test_that_fails_by_itself(moontap_replay):
    ask(moontap_replay("session.flow").anthropic_url, "something else")

@pytest.mark.xfail(strict=True)
def test_that_shall_fail(moontap_replay):
    other(moontap_replay("session.flow"))

def test_twice_what_was_once(moontap_replay):
    replay = moontap_replay("session.flow")
    ask(replay.anthropic_url, turns=1)
    try:
        ask(replay.anthropic_url, turns=1)
    except OSError:
        pass
"""


def test_a_request_that_matches_nothing_fails_the_test(flows: Project) -> None:
    flows.write(test_it=UNMATCHED)
    ended = flows.pytest()
    assert ended.code == 1, ended.output
    assert ended.counts == {"failed": 3, "passed": 1, "xfailed": 1}
    assert ended.output.count("moontap replay: no recorded request matches.") == 2
    assert ended.output.count("every recorded answer to this request was served once") == 1
    assert "with once=False they are served again" in ended.output
    assert "HTTP Error 400" in ended.output  # its own failure stays what is said first
    assert "something else" in ended.output
    assert "where am I?" in ended.output


LOST = """
from agent import ask
from moontap.testing import assert_all_paired

def test_the_agent_loops(moontap_replay, moontap_tap):
    tap = moontap_tap(moontap_replay("session.flow", strict=False), rewrite="off")
    try:
        ask(tap.anthropic_url)
    except OSError:
        pass
    assert_all_paired(tap)

def test_it_dies(moontap_replay, moontap_tap):
    ask(moontap_tap(moontap_replay("session.flow"), rewrite="off").anthropic_url)

def test_it_does_nothing(moontap_replay, moontap_tap):
    tap = moontap_tap(moontap_replay("session.flow"))
    assert_all_paired(tap)
"""


def test_a_lost_call_is_shown(flows: Project) -> None:
    flows.write(test_it=LOST)
    ended = flows.pytest()
    assert ended.counts == {"failed": 3}, ended.output
    assert "1 of 2 tool calls did not come back with a result" in ended.output
    assert '2  pwd   {"deep":1}  pwd_0 *      pwd_0  unanswered' in ended.output
    assert "test_it_dies" in ended.output
    assert ended.output.count("capture: ") == 2
    assert "127.0.0.1 answered 400 to POST /anthropic/v1/messages" in ended.output
    assert "no tool call came through the tap" in ended.output
    # What stands in a check is not what a person looks for.
    assert "def assert_all_paired" not in ended.output


WHERE = """
import pytest
from moontap.testing import pairs_of

@pytest.mark.moontap_flows("marked")
def test_marked(moontap_replay):
    assert moontap_replay("x.flow").flow.parent.name == "marked"

def test_configured(moontap_replay):
    assert moontap_replay("x.flow").flow.parent.name == "configured"

def test_beside(moontap_replay):
    assert moontap_replay("y.flow").flow.parent.name == "tests"

def test_from_the_root(moontap_replay):
    replay = moontap_replay("marked/x.flow")
    assert replay.flow.parent.name == "marked"
    assert len(pairs_of(replay.flow)) == 2

def test_several(moontap_replay):
    assert moontap_replay("x.flow").url != moontap_replay("y.flow").url

def test_a_folder(moontap_replay):
    assert len(moontap_replay("marked").unserved) == 3

def test_missing(moontap_replay):
    moontap_replay("z.flow")
"""


def test_where_flows_are_looked_for(project: Project, session_flow: Path) -> None:
    for name in ("marked/x", "configured/x", "tests/y"):
        path = project.folder / f"{name}.flow"
        path.parent.mkdir()
        shutil.copy(session_flow, path)
    (project.folder / "pytest.ini").write_text("[pytest]\nmoontap_flows = configured\n")
    project.write(**{"tests/test_it": WHERE})
    ended = project.pytest("--strict-markers", "--strict-config")
    assert ended.counts == {"failed": 1, "passed": 6}, ended.output
    assert "there is no flow 'z.flow'; looked at" in ended.output
    assert "pytest --moontap-record 'tests/test_it.py::test_missing'" in ended.output


DAMAGED = """
import pytest

def test_it(moontap_replay):
    with pytest.warns(UserWarning, match=r"session\\.flow: left out 1 damaged record"):
        replay = moontap_replay("session.flow")
    assert len(replay.unserved) == 2

def test_a_file_of_something_else(moontap_replay):
    with pytest.raises(Exception, match="agent.py is not a flow file"):
        moontap_replay("agent.py")

@pytest.mark.parametrize(("settings", "said"), [
    ({"pace": "fast"}, "'fast' is no pace"),
    ({"rules": "no.yaml"}, "no.yaml: cannot be read"),
])
def test_wrong_settings(settings, said, moontap_replay):
    with pytest.raises(ValueError, match=said):
        moontap_replay("session.flow", **settings)
"""


def test_what_is_damaged_or_wrong_is_said(flows: Project) -> None:
    path = flows.folder / "session.flow"
    path.write_bytes(path.read_bytes()[:-10])
    flows.write(test_it=DAMAGED)
    ended = flows.pytest()
    assert ended.counts == {"passed": 4}, ended.output

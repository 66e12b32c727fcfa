"""`--moontap-record` as a person has it, with a stand-in for the real API."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from moontap.standin import Standin
from moontap.testing import pairs_of
from moontap.testing.flows import flows
from tests.testing.projects import KEY, Project
from tests.testing.test_plugin import AGENT

TEST = """
import json, os, urllib.request
from agent import ask

def test_it(moontap_replay, moontap_tap):
    tap = moontap_tap(moontap_replay("flows/new.flow"))
    answer = ask(tap.anthropic_url, os.environ.get("QUESTION", "where am I?"))
    assert answer == os.environ.get("ANSWER", "You are in /work.")

def test_without_a_tap(moontap_replay):
    replay = moontap_replay("flows/bare.flow")
    body = {"model": "kimi-k3", "messages": [{"role": "user", "content": "hi"}]}
    headers = {"authorization": f"Bearer {replay.api_key}", "content-type": "application/json"}
    request = urllib.request.Request(
        replay.openai_url + "/chat/completions", json.dumps(body).encode(), headers
    )
    with urllib.request.urlopen(request) as reply:
        assert json.load(reply)["choices"]
    assert len(replay.requests) == 1

def test_that_plays_nothing(moontap_tap):
    pass
"""


@pytest.fixture
def recording(project: Project) -> Project:
    (project.folder / "flows").mkdir()
    project.write(agent=AGENT, test_it=TEST)
    return project


def environment(standin: Standin, **more: str) -> dict[str, str]:
    return {
        "ANTHROPIC_BASE_URL": f"{standin.base_url}/anthropic",
        "OPENAI_BASE_URL": f"{standin.base_url}/v1",
        **more,
    }


def saved(project: Project) -> list[str]:
    return sorted(path.name for path in (project.folder / "flows").iterdir())


def test_without_a_key_nothing_is_called(recording: Project, standin: Standin) -> None:
    ended = recording.pytest("-rs", "--moontap-record", env=environment(standin))
    assert (ended.code, ended.counts) == (0, {"passed": 1, "skipped": 2}), ended.output
    assert "--moontap-record needs a key, and nothing was called: set MOONSHOT_API_KEY" in (
        ended.output
    )
    assert len(standin.requests) == 0
    assert saved(recording) == []


def test_what_passes_is_saved_and_plays(recording: Project, standin: Standin) -> None:
    """In several processes, which is the harder way: who saves is not who tells."""
    env = environment(standin, MOONSHOT_API_KEY=KEY)
    ended = recording.pytest("--moontap-record", "-n", "2", env=env)
    assert (ended.code, ended.counts) == (0, {"passed": 3}), ended.output
    assert "recorded, without secrets: flows/new.flow (3 exchanges)" in ended.output
    assert "recorded, without secrets: flows/bare.flow (1 exchange)" in ended.output
    assert saved(recording) == ["bare.flow", "new.flow"]
    assert KEY not in ended.output
    assert any(KEY in str(dict(request.headers)) for request in standin.requests)
    count = len(standin.requests)
    assert count == 4

    # What was recorded agrees with itself, and names the server, not a port of a tap.
    new = recording.folder / "flows" / "new.flow"
    assert [line["status"] for line in pairs_of(new)] == ["ok", "ok"]
    assert [line["upstream_id"] for line in pairs_of(new)] == ["pwd_0", "pwd_0"]
    assert {flow.request.pretty_url for flow in flows(new)} == {
        f"{standin.base_url}/anthropic/v1/messages"
    }
    for path in (recording.folder / "flows").iterdir():
        assert KEY.encode() not in path.read_bytes()
        assert path.stat().st_mode & 0o777 == 0o600

    ended = recording.pytest()
    assert (ended.code, ended.counts) == (0, {"passed": 3}), ended.output
    assert len(standin.requests) == count


def test_what_fails_is_not_saved(recording: Project, standin: Standin, session_flow: Path) -> None:
    before = recording.folder / "flows" / "new.flow"
    shutil.copy(session_flow, before)
    kept = before.read_bytes()
    env = environment(standin, MOONSHOT_API_KEY=KEY, ANSWER="another")
    ended = recording.pytest("--moontap-record", "--showlocals", env=env)
    assert ended.code == 1, ended.output
    assert "not recorded, as the test did not pass: flows/new.flow" in ended.output
    assert before.read_bytes() == kept
    assert "recorded, without secrets: flows/bare.flow (1 exchange)" in ended.output
    assert saved(recording) == ["bare.flow", "new.flow"]
    assert KEY not in ended.output


SHOWN = """
def call(api_key, base_url):
    raise RuntimeError("refused")

def test_it(moontap_replay, moontap_tap):
    tap = moontap_tap(moontap_replay("flows/new.flow"))
    api_key = tap.api_key
    call(api_key, tap.openai_url)
"""


def test_a_traceback_does_not_show_the_key(recording: Project, standin: Standin) -> None:
    recording.write(test_it=SHOWN)
    env = environment(standin, MOONSHOT_API_KEY=KEY)
    ended = recording.pytest("--moontap-record", "--showlocals", "--tb=long", env=env)
    assert ended.code == 1
    assert "api_key    = <a key>" in ended.output
    assert KEY not in ended.output


def test_two_servers_are_one_too_many(recording: Project, standin: Standin) -> None:
    env = environment(standin, MOONSHOT_API_KEY=KEY) | {"OPENAI_BASE_URL": "http://127.0.0.1:9/v1"}
    ended = recording.pytest("test_it.py::test_it", "--moontap-record", env=env)
    assert ended.code == 1
    assert "but one tap has one upstream" in ended.output
    assert len(standin.requests) == 0

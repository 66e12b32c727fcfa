"""After a run with known keys: none is on the disk or on the screen, and the traffic was untouched.

The keys are made up. Each stands where a key can stand: headers, address, tool result, and the
model's text, thinking and arguments, cut into small pieces by the stream.
"""

from __future__ import annotations

import random
import string
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.e2e import leaks, rig
from tests.e2e.conftest import Once
from tests.e2e.talk import Talk

_random = random.Random(1)


def key(shape: str = "sk-", length: int = 40) -> str:
    """A key that shares nothing with the others, so that one found tells where from."""
    return shape + "".join(_random.choices(string.ascii_letters + string.digits, k=length))


IN_HEADERS = {
    "authorization": key(),
    "authorization of no known shape": key("moon."),
    "x-api-key": key("sk-ant-api03-"),
    "cookie": key(""),
    "proxy-authorization": key("plain."),
}
IN_QUERY = {"query": key()}
IN_RESULT = {"result": key("sk-kimi-"), "github": key("ghp_", 36)}
IN_REPLY = {
    "text": key(),
    "thinking": key("sk-or-v1-"),
    "arguments": key(),
    "final": key("sk-proj-"),
}
SECRETS = {**IN_HEADERS, **IN_QUERY, **IN_RESULT, **IN_REPLY}

SCRIPT = {
    "steps": [
        {
            "text": f"The key is {IN_REPLY['text']}, I think.",
            "thinking": f"Is it {IN_REPLY['thinking']}?",
            "calls": [
                {
                    "name": "Bash",
                    "arguments": {"command": f'login --key "{IN_REPLY["arguments"]}"'},
                }
            ],
        },
        {"calls": [{"name": "Bash", "arguments": {"command": "ls"}}]},
    ],
    "final": f"Yours is {IN_REPLY['final']}.",
    "pacing": {"delta_chars": 3},
    # Compressed although nobody asked: a secret in it must not survive for that.
    "faults": [{"at_request": 2, "kind": "encoding", "encoding": "gzip"}],
}
RESULT = "env: " + " ".join(
    [*IN_RESULT.values(), IN_HEADERS["authorization of no known shape"], IN_REPLY["text"]]
)


@dataclass
class Run:
    """What a run with keys left. replies: as the client got them."""

    captures: Path
    received: str
    tap_output: str
    replies: list[bytes] = field(default_factory=list)
    text: str = ""


def headers(scheme: str) -> dict[str, str]:
    return {
        "authorization": scheme,
        "x-api-key": IN_HEADERS["x-api-key"],
        "cookie": f"theme=dark; session={IN_HEADERS['cookie']}",
        "proxy-authorization": f"Basic {IN_HEADERS['proxy-authorization']}",
    }


@pytest.fixture(scope="module", params=["off", "all"])
def run(request: pytest.FixtureRequest, once: Once, conf: Path) -> Run:
    mode = str(request.param)
    return once(f"secrets-{mode}", lambda folder: run_with_keys(folder, conf, mode))


def run_with_keys(folder: Path, conf: Path, rewrite: str) -> Run:
    with ExitStack() as stack:
        standin = stack.enter_context(rig.standin(folder, SCRIPT))
        mode = [f"reverse:{standin.url}"]
        # mitmdump cuts an address off at the width of the terminal; a wide one shows it all.
        wide = {"COLUMNS": "1000"}
        tap = stack.enter_context(rig.tap(folder, conf, mode, env=wide, moontap_rewrite=rewrite))
        run = Run(tap.captures, "", "")
        plain = headers(f"Bearer {IN_HEADERS['authorization of no known shape']}")
        params = {"api_key": IN_QUERY["query"]}
        with Talk(tap.url, headers=plain, params=params) as talk:
            talk.to_the_end(RESULT)
            run.text = talk.text
        bearer = headers(f"Bearer {IN_HEADERS['authorization']}")
        with httpx.Client(
            base_url=tap.url, headers=bearer, params=params, trust_env=False, timeout=20
        ) as client:
            for path, body in bodies():
                run.replies.append(client.post(path, json=body).raise_for_status().content)
        assert tap.process.stop() == 0
        run.received = standin.log.read_text("utf-8")
        run.tap_output = tap.process.output
    return run


def bodies() -> Iterator[tuple[str, dict[str, Any]]]:
    """A request of each protocol, streamed and not, that gets the first step."""
    message = {"role": "user", "content": f"do it with {IN_RESULT['result']}"}
    common = {"model": "kimi-k3", "max_tokens": 100, "messages": [message]}
    function = {"name": "Bash", "parameters": {"type": "object"}}
    for stream in (True, False):
        tools: list[Any] = [{"name": "Bash", "input_schema": {"type": "object"}}]
        yield "/anthropic/v1/messages", {**common, "stream": stream, "tools": tools}
        tools = [{"type": "function", "function": function}]
        yield "/v1/chat/completions", {**common, "stream": stream, "tools": tools}


def test_the_capture_holds_no_key(run: Run) -> None:
    assert len(rig.saved_flows(run.captures)) == 3 + 4
    assert leaks.in_folder(run.captures, SECRETS) == set()


def test_the_output_of_mitmdump_holds_no_key(run: Run) -> None:
    assert "capture in" in run.tap_output
    assert leaks.in_bytes(run.tap_output.encode(), SECRETS) == set()


def test_the_traffic_itself_was_untouched(run: Run) -> None:
    """Also shows that the search finds what is there: plain, and cut into pieces."""
    assert run.text == SCRIPT["final"]
    in_first_step = IN_REPLY.keys() - {"final"}
    for number, reply in enumerate(run.replies):
        find = leaks.in_events if number < 2 else leaks.in_bytes
        assert find(reply, IN_REPLY) == in_first_step
        if number < 2:
            assert leaks.in_bytes(reply, IN_REPLY) == set()  # no piece is long enough
    # The stand-in's own record leaves out headers; the closing text came after the last request.
    not_there = IN_HEADERS.keys() - {"authorization of no known shape"} | {"final"}
    assert leaks.in_bytes(run.received.encode(), SECRETS) == SECRETS.keys() - not_there


def test_the_pair_log_is_still_of_use(run: Run) -> None:
    first, second, *_ = rig.saved_pairs(run.captures)
    assert first["arguments"]["command"].startswith('login --key "')
    assert first["result"].startswith("env: ")
    assert (second["tool"], second["arguments"]) == ("Bash", {"command": "ls"})


def test_a_replay_gives_the_same_pair_log_and_no_key(run: Run, tmp_path: Path, conf: Path) -> None:
    live = rig.run_folder(run.captures)
    again = rig.replay(tmp_path, conf, live / "traffic.flow")
    assert (again / "pairs.jsonl").read_bytes() == (live / "pairs.jsonl").read_bytes()
    assert leaks.in_folder(again, SECRETS) == set()
    assert leaks.in_bytes((tmp_path / "replay.log").read_bytes(), SECRETS) == set()

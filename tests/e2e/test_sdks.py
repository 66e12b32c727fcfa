"""Programs with the vendors' synchronous SDKs behind mitmdump in regular mode, over real TLS.

They know of the tap what a person would set: HTTPS_PROXY and SSL_CERT_FILE. Both run at once
against one fake api.moonshot.cn, streaming and not.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from tests.e2e import oracle, rig
from tests.e2e.conftest import Once

HOST = "api.moonshot.cn"
ENV = {
    "anthropic": {
        "ANTHROPIC_BASE_URL": f"https://{HOST}/anthropic",
        "ANTHROPIC_API_KEY": "made-up-key-of-the-tests",
    },
    "openai": {
        "OPENAI_BASE_URL": f"https://{HOST}/v1",
        "OPENAI_API_KEY": "made-up-key-of-the-tests",
    },
}
SCRIPT = {
    "steps": [
        {"text": "I look.", "calls": [{"name": "Bash", "arguments": {"command": "pwd"}}]},
        {
            "calls": [
                {"name": "Bash", "arguments": {"command": "ls"}},
                {"name": "Bash", "arguments": {"command": "date"}},
            ]
        },
        {"calls": [{"name": "Bash", "arguments": {"command": "pwd"}}]},
    ],
    "final": "The task is done.",
}
CALLS = 16  # of two programs that do the four calls of the script twice


@dataclass
class Group:
    """Both programs through one tap: exit code and output by SDK."""

    codes: dict[str, int]
    outputs: dict[str, str]
    received: list[dict[str, Any]]
    captures: Path


@pytest.fixture(scope="module")
def group(once: Once, conf: Path) -> Group:
    return once("sdks", lambda folder: run_both(folder, conf))


def run_both(folder: Path, conf: Path) -> Group:
    with ExitStack() as stack:
        standin = stack.enter_context(rig.standin(folder, SCRIPT, "--tls"))
        tap = stack.enter_context(
            rig.tap(
                folder,
                conf,
                ["regular"],
                "-s",
                rig.HERE / "clients" / "redirect.py",
                env={
                    "MOONTAP_TEST_HOST": HOST,
                    "MOONTAP_TEST_PORT": str(urlsplit(standin.url).port),
                },
                connection_strategy="lazy",
                ssl_verify_upstream_trusted_ca=standin.ca,
                moontap_rewrite="duplicates",
            )
        )
        trust = {"HTTPS_PROXY": tap.url, "SSL_CERT_FILE": str(conf / "mitmproxy-ca-cert.pem")}
        programs = {
            sdk: stack.enter_context(
                rig.running(
                    [sys.executable, rig.HERE / "clients" / "sdk_agent.py", sdk],
                    folder,
                    sdk,
                    {**env, **trust},
                )
            )
            for sdk, env in ENV.items()
        }
        codes = {name: program.wait(40) for name, program in programs.items()}
        outputs = {name: program.output for name, program in programs.items()}
        assert tap.process.stop() == 0, tap.process.output
        return Group(codes, outputs, standin.received, tap.captures)


@pytest.mark.parametrize("sdk", ENV)
def test_the_task_ends(group: Group, sdk: str) -> None:
    assert group.outputs[sdk].splitlines() == [
        "stream=True: The task is done.",
        "stream=False: The task is done.",
    ]
    assert group.codes[sdk] == 0


def test_the_pair_log_holds_every_call_once(group: Group) -> None:
    lines = rig.saved_pairs(group.captures)
    fields = ("message_id", "index", "request_id", "upstream_id", "tool", "arguments")

    def facts(pairs: list[dict[str, Any]]) -> list[str]:
        return sorted(str([pair[field] for field in fields]) for pair in pairs)

    assert facts(lines) == facts(oracle.made_calls(group.received, SCRIPT))
    ids = [(line["protocol"], line["session"], line["id"]) for line in lines]
    assert len(set(ids)) == len(ids) == CALLS


def test_nothing_is_found_but_for_information(group: Group) -> None:
    found = rig.saved_findings(group.captures)
    assert [line for line in found if line["severity"] != "info"] == []
    assert "id-reused" in {line["code"] for line in found}


def test_each_result_is_with_its_call(group: Group) -> None:
    lines = rig.saved_pairs(group.captures)
    assert {line["status"] for line in lines} == {"ok"}
    assert all(line["latency_s"] > 0 for line in lines)
    by_task: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        assert line["result"].endswith(" of " + line["arguments"]["command"])
        by_task.setdefault((line["protocol"], line["session"]), []).append(line["result"])
    wanted = ["result 0 of pwd", "result 1 of ls", "result 1 of date", "result 2 of pwd"]
    assert list(by_task.values()) == [wanted] * 4


def test_a_replay_gives_the_same_pair_log(group: Group, tmp_path: Path, conf: Path) -> None:
    live = rig.run_folder(group.captures)
    again = rig.replay(tmp_path, conf, live / "traffic.flow")
    was = (live / "pairs.jsonl").read_text("utf-8").splitlines()
    assert (again / "pairs.jsonl").read_text("utf-8").splitlines() == was
    assert len(was) == CALLS

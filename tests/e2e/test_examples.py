"""The two agents of `examples/` and their tests, run as a stranger runs them: no key, no network.

The README shows the same files, word for word.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from moontap.standin import Standin, load_script
from moontap.testing import assert_same_calls, pairs_of
from moontap.testing.background import Background
from moontap.testing.flows import flows
from tests.cli.forks import Forks
from tests.testing.projects import KEY, ROOT, Project, entry_points

EXAMPLES = ROOT / "examples"
AGENTS = ("openai_agent", "anthropic_agent")
# Whatever is not on loopback fails at once.
OFFLINE = {
    "HTTP_PROXY": "http://127.0.0.1:9",
    "HTTPS_PROXY": "http://127.0.0.1:9",
    "NO_PROXY": "127.0.0.1,localhost",
}


@pytest.fixture
def examples(tmp_path: Path, forked_python: Forks) -> Project:
    folder = tmp_path / "examples"
    shutil.copytree(EXAMPLES, folder, ignore=shutil.ignore_patterns("__pycache__", ".*"))
    installed = entry_points(tmp_path / "installed")
    return Project(folder, f"{ROOT / 'addon'}:{installed}", forked_python)


def test_they_pass_with_no_key_and_no_network(examples: Project) -> None:
    ended = examples.pytest(env=OFFLINE)
    assert (ended.code, ended.counts) == (0, {"passed": 2}), ended.output


def test_they_fail_where_ids_reach_the_agents_as_the_server_gave_them(examples: Project) -> None:
    for agent in AGENTS:
        test = examples.folder / f"test_{agent}.py"
        text, count = re.subn(
            r"moontap_tap\((.+)\)\n", r'moontap_tap(\1, rewrite="off")\n', test.read_text()
        )
        assert count == 1
        test.write_text(text)
    ended = examples.pytest(env=OFFLINE)
    assert (ended.code, ended.counts) == (1, {"failed": 2}), ended.output
    assert ended.output.count("1 of 3 tool calls did not come back with a result") == 2
    for id_ in ("read_file_0 *", "read_file:0 *"):
        assert id_ in ended.output


def test_recorded_again_they_are_the_same(examples: Project) -> None:
    """As examples/README.md says that they were recorded."""
    with Background() as background:
        standin, close = background.enter(Standin(load_script(EXAMPLES / "standin.yaml")))
        env = {
            "MOONSHOT_API_KEY": KEY,
            "OPENAI_BASE_URL": f"{standin.base_url}/v1",
            "ANTHROPIC_BASE_URL": f"{standin.base_url}/anthropic",
        }
        ended = examples.pytest("--moontap-record", env=env)
        assert (ended.code, ended.counts) == (0, {"passed": 2}), ended.output
        assert len(standin.requests) == 8
        close()
    for agent in AGENTS:
        made, kept = (folder / "flows" / f"{agent}.flow" for folder in (examples.folder, EXAMPLES))
        assert made.read_bytes() != kept.read_bytes()
        assert_same_calls(made, kept)
        pairs = [
            [(line["upstream_id"], line["id"], line["result"]) for line in pairs_of(path)]
            for path in (made, kept)
        ]
        assert pairs[0] == pairs[1]
        assert [flow.request.path for flow in flows(made)] == [
            flow.request.path for flow in flows(kept)
        ]


def test_what_is_committed_is_clean() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "moontap.cli", "scrub", "--check", str(EXAMPLES / "flows")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_readme_shows_these_very_files() -> None:
    blocks = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "README.md").read_text("utf-8"), re.S | re.M
    )
    for agent in AGENTS:
        for name in (f"{agent}.py", f"test_{agent}.py"):
            assert (EXAMPLES / name).read_text("utf-8") in blocks, name

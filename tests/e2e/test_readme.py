"""The README's commands, run as they are written.

A block that is not known here fails: whoever adds a command says how it is tried. What a test adds
is the environment (a HOME of its own, `claude` and `moontap` on PATH) and, where a block starts
something that stays, its end.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from moontap.capture.exchange import client_request
from moontap.capture.reader import FlowFile
from moontap.cli import build_parser

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text("utf-8")
BLOCKS = re.findall(r"^```sh\n(.*?)^```", README, re.DOTALL | re.MULTILINE)

KNOWN = (
    "scripts/demo",
    "moontap run -- claude\n",
    'mitmdump -s "$(moontap path)"',
    "moontap proxy --web",
    "moontap standin",
    "grep ",
    "moontap cut moontap-captures",
    "moontap explain moontap-captures",
)


def block(start: str) -> str:
    (found,) = [text for text in BLOCKS if start in text]
    return str(found)


def commands(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if line := line.partition("#")[0].strip():
            yield line


@pytest.fixture
def shell(tmp_path: Path, claude_program: Path) -> dict[str, str]:
    """The environment of a person who has just set it up."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "claude").symlink_to(claude_program)
    (tmp_path / "home").mkdir()
    return {
        "PATH": f"{programs}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(ROOT / "addon"),
        "IS_SANDBOX": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_AUTOUPDATER": "1",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }


def run(text: str, folder: Path, env: dict[str, str], seconds: float) -> tuple[int, str]:
    """A block in a shell of its own; all that it started is ended with it."""
    process = subprocess.Popen(
        ["bash", "-euc", text],
        cwd=folder,
        env=env,
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)
        output, _ = process.communicate(timeout=20)
    return process.returncode, output


def test_every_block_is_known() -> None:
    assert [sum(start in text for text in BLOCKS) for start in KNOWN] == [1] * len(KNOWN)
    assert len(BLOCKS) == len(KNOWN)


def test_the_two_commands_are_programs() -> None:
    for command in commands(block("scripts/demo")):
        assert os.access(ROOT / command.split()[0], os.X_OK), command


def test_run_takes_what_is_written() -> None:
    written = list(commands(block("moontap run -- claude\n")))
    mentioned = re.findall(r"`(--upstream \S+)`", README)
    for command in written:
        _, run_, dashes, *agent = command.split()
        assert (run_, dashes, bool(agent)) == ("run", "--", True)
    assert len(mentioned) == 2
    for arguments in mentioned:
        options = build_parser().parse_args(["run", *arguments.split(), "--", "claude"])
        assert options.upstream == arguments.split()[1]


def test_looking_takes_what_is_written() -> None:
    """That these two start is tried in tests/cli; here they would have to be ended again."""
    web, look = commands(block("moontap proxy --web"))
    assert build_parser().parse_args(web.split()[1:]).web is True
    assert build_parser().parse_args(look.split()[1:]).files == ["moontap-captures"]


def test_the_addon_starts_as_written(tmp_path: Path, shell: dict[str, str]) -> None:
    text = block('mitmdump -s "$(moontap path)"').strip() + " --listen-port 0"
    _, output = run(f"timeout 8 {text}" if sys.platform == "linux" else text, tmp_path, shell, 30)
    assert "reverse proxy to https://api.moonshot.cn listening" in output
    assert "rror" not in output


def test_what_went_wrong(tmp_path: Path, shell: dict[str, str]) -> None:
    capture = tmp_path / "moontap-captures" / "20261129T131500Z-1"
    capture.mkdir(parents=True)
    shutil.copy(ROOT / "flows" / "claude-code-loses-pairs.flow", capture / "traffic.flow")
    *_, last = FlowFile(ROOT / "flows" / "chat-healing-k2.flow")
    assert last.response
    (tmp_path / "request.json").write_bytes(client_request(last))
    (tmp_path / "reply.sse").write_bytes(last.response.content or b"")
    line = {"type": "user", "message": {"role": "user", "content": "go"}, "uuid": "1"}
    (tmp_path / "session.jsonl").write_text(json.dumps(line) + "\n")
    explain, lint, show, bundle = commands(block("moontap explain moontap-captures"))

    code, told = run(explain, tmp_path, shell, 30)
    assert code == 0, told
    plain = " ".join(told.split())
    shown = re.findall(
        r"^```\n(Where it went wrong first.*?)^```", README, re.DOTALL | re.MULTILINE
    )
    (first, *sentences) = " ".join(shown[0].split()).split(": ", 1)
    assert first in plain
    for sentence in re.findall(r"The (?:id|client) .*?(?= What came|$)", " ".join(sentences)):
        assert sentence.strip() in plain
    code, found = run(lint, tmp_path, shell, 30)
    assert code == 1, found
    assert "error id-reused" in found
    code, shown_ = run(show, tmp_path, shell, 30)
    assert (code, "unanswered" in shown_) == (0, True), shown_
    code, said = run(bundle, tmp_path, shell, 60)
    assert code == 0, said
    with zipfile.ZipFile(tmp_path / "bundle.zip") as archive:
        assert {"REPORT.md", "reproduce.py"} <= set(archive.namelist())


def test_claude_code_against_the_stand_in_then_the_capture(
    tmp_path: Path, shell: dict[str, str]
) -> None:
    code, output = run(block("moontap standin"), tmp_path, shell, 90)
    assert code == 0, output
    assert (
        "3 calls, 3 pairs, 2 with an id used before, 3 rewritten, 0 unanswered in 4 requests"
        in output
    )
    for command in commands(block("grep ")):
        code, lines = run(command, tmp_path, shell, 10)
        # None lost; the id of each reply after the first came back.
        assert (code, len(lines.splitlines())) == ((1, 0) if "unanswered" in command else (0, 2))
    (captured,) = (tmp_path / "moontap-captures").glob("*Z-*")
    (rebuild,) = re.findall(r"`(mitmdump -nr traffic\.flow [^`]*)`", README)
    code, output = run(rebuild, captured, shell, 60)
    assert code == 0, output
    (rebuilt,) = (captured / "moontap-captures").glob("*Z-*")
    assert (rebuilt / "pairs.jsonl").read_bytes() == (captured / "pairs.jsonl").read_bytes()

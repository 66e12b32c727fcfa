"""`moontap proxy` as a process: what it prints, and that what it prints works."""

from __future__ import annotations

import json
import os
import pty
import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import httpx
import pytest

from moontap.commands.proxy import to_paste
from moontap.tapping import upstream
from tests.cli.commands import KEY, REQUEST, Moontap, holds, pairs


@pytest.mark.parametrize(
    ("url", "anthropic", "openai"),
    [
        ("https://api.moonshot.ai", "http://127.0.0.1:9/anthropic", "http://127.0.0.1:9/v1"),
        (
            "https://api.kimi.com/coding",
            "http://127.0.0.1:9/coding",
            "http://127.0.0.1:9/coding/v1",
        ),
    ],
)
def test_what_is_to_be_pasted(url: str, anthropic: str, openai: str) -> None:
    text = to_paste("http://127.0.0.1:9", upstream.parse(url))
    assert f"export ANTHROPIC_BASE_URL={anthropic}\n" in text
    assert f'anthropic.Anthropic(base_url="{anthropic}"' in text
    assert f'openai.OpenAI(base_url="{openai}"' in text
    assert f"export KIMI_BASE_URL={openai}\n" in text


def test_a_path_is_one_word_of_what_is_to_be_pasted() -> None:
    path = """/$(touch PWNED)"'"""
    text = to_paste("http://127.0.0.1:9", upstream.Upstream("https://x", path, f"{path}/v1"))
    exports = [shlex.split(line) for line in text.splitlines() if line.startswith("export ")]
    assert exports[0] == ["export", f"ANTHROPIC_BASE_URL=http://127.0.0.1:9{path}"]
    assert [len(words) for words in exports] == [2, 3, 2]
    assert f"base_url={json.dumps(f'http://127.0.0.1:9{path}')}, auth" in text


def until(process: subprocess.Popen[str], mark: str) -> str:
    """What a process prints on stdout, to the line that begins with `mark`."""
    assert process.stdout
    lines = []
    for line in process.stdout:
        lines.append(line)
        if line.startswith(mark):
            return "".join(lines)
    raise AssertionError(f"no {mark!r} in {lines}: {process.communicate()[1]}")


def test_an_agent_goes_through_it_and_it_ends_with_a_summary(
    moontap_command: Moontap, standin_url: str
) -> None:
    process = moontap_command.start("proxy", "--port", "0", "--upstream", standin_url)
    printed = until(process, "kimi")
    base_urls = dict(re.findall(r"export (\w+_BASE_URL)=(\S+)", printed))
    agent = subprocess.run(
        [sys.executable, "-c", REQUEST],
        env=moontap_command.environment | base_urls,
        capture_output=True,
        text=True,
    )
    assert agent.stdout == "200\n", agent.stderr
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 0, err
    assert "200 POST /anthropic/v1/messages, 1 call, 1 rewritten\n" in err
    assert "1 call, 0 pairs, 1 rewritten, 1 unanswered in 1 request" in err
    (capture,) = moontap_command.captures()
    assert [line["status"] for line in pairs(capture)] == ["unanswered"]
    assert "moontap: \n" not in err
    assert KEY not in printed + out + err
    assert holds(capture, KEY) == []


def a_browser(folder: Path) -> dict[str, str]:
    """An environment in which the only browser is one that writes down what it is to open."""
    programs = folder / "programs"
    programs.mkdir()
    browser = programs / "xdg-open"
    browser.write_text(f'#!/bin/sh\necho "$1" >>"{folder}/opened"\n')
    browser.chmod(0o755)
    return {"PATH": str(programs), "DISPLAY": ":99", "BROWSER": ""}


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a real browser would open")
def test_the_page_opens_on_loopback_and_asks_for_its_token(
    moontap_command: Moontap, standin_url: str
) -> None:
    """On a terminal: one who runs `moontap proxy --web | tee` gets the link alone."""
    screen, terminal = pty.openpty()
    process = moontap_command.start(
        *("proxy", "--web", "--port", "0", "--web-port", "0", "--upstream", standin_url),
        env=a_browser(moontap_command.folder),
        stdout=terminal,
    )
    os.close(terminal)
    with os.fdopen(screen, closefd=True) as process.stdout:
        url = until(process, "mitmweb: ").split()[-1]
        site = re.match(r"http://127\.0\.0\.1:(\d+)/\?token=\w+#/flows\?s=%21", url)
        assert site
        with httpx.Client(trust_env=False) as client:
            assert client.get(url.partition("?")[0]).status_code == 403
            assert client.get(url, follow_redirects=True).status_code == 200
            options = client.get(f"http://127.0.0.1:{site[1]}/options").json()
            with pytest.raises(httpx.ConnectError):
                client.get(f"http://127.0.0.2:{site[1]}/")
        assert options["web_host"]["value"] == options["listen_host"]["value"] == "127.0.0.1"
        assert options["web_columns"]["value"][1:3] == ["path", "comment"]
        opened = moontap_command.folder / "opened"
        for _ in range(100):
            if opened.exists() and opened.read_text():
                break
            time.sleep(0.05)
        assert opened.read_text() == f"{url}\n"
        process.send_signal(signal.SIGTERM)
        assert process.stderr
        err = process.stderr.read()
        assert process.wait(20) == 0, err
        assert "no request came through the tap" in err


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_it_goes_on_where_nobody_reads_any_more(
    stream: str, moontap_command: Moontap, standin_url: str
) -> None:
    """`moontap proxy | head -3`: the reader is gone before the first line, and the tap serves."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    reader, writer = os.pipe()
    os.close(reader)
    gone: dict[str, Any] = {stream: writer}
    process = moontap_command.start(
        *("proxy", "--port", str(port), "--upstream", standin_url), **gone
    )
    os.close(writer)
    url = f"http://127.0.0.1:{port}/anthropic/v1/messages"
    body = {"model": "kimi-k3", "messages": [{"role": "user", "content": "go"}], "max_tokens": 9}
    try:
        with httpx.Client(transport=httpx.HTTPTransport(retries=5), trust_env=False) as client:
            assert client.post(url, json=body).status_code == 200
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
    assert process.returncode == 0, err
    assert "Traceback" not in f"{out}{err}"
    assert "BrokenPipe" not in f"{out}{err}"

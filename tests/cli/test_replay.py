"""`moontap replay` as a process: what it prints, how it ends, and that it connects to nothing."""

from __future__ import annotations

import re
import signal
import socket
import ssl
import subprocess
from pathlib import Path

import httpx
import pytest

from moontap.capture.reader import FlowFile
from moontap.cli import main
from tests.cli.commands import ANTHROPIC, KEY, OPENAI, Moontap, python
from tests.cli.forks import Forks
from tests.cli.test_proxy import until
from tests.replay.recording import flow, save
from tests.samples import CHAT, MESSAGES, chat_request, messages_events, messages_request
from tests.sentinel import Sentinel


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    """A session of three exchanges."""
    flows = [flow(messages_request(), messages_events("Bash_0"), path="/coding/v1/messages")]
    flows += [flow(messages_request([("Bash_0", "pwd", "/w")]), [b"two"])]
    flows += [flow(chat_request(), None, path=CHAT)]
    return save(tmp_path / "session.flow", flows)


def ended(process: subprocess.Popen[str], how: signal.Signals = signal.SIGINT) -> tuple[int, str]:
    process.send_signal(how)
    _, err = process.communicate(timeout=20)
    return process.returncode, err


def port_of(printed: str) -> int:
    found = re.search(r"export ANTHROPIC_BASE_URL=https?://127\.0\.0\.1:(\d+)", printed)
    assert found, printed
    return int(found[1])


def test_it_prints_what_to_paste_then_each_request_and_a_summary(
    moontap_command: Moontap, recorded: Path
) -> None:
    process = moontap_command.start("replay", recorded.name)
    printed = until(process, "kimi\n")
    base = f"http://127.0.0.1:{port_of(printed)}"
    # The paths are those that were recorded.
    assert f"export ANTHROPIC_BASE_URL={base}/coding\n" in printed
    assert f'openai.OpenAI(base_url="{base}/v1", api_key="YOUR_KEY")' in printed
    with httpx.Client(trust_env=False) as client:
        assert client.post(base + MESSAGES, content=messages_request()).status_code == 200
        bad = client.post(base + MESSAGES, content=messages_request(opening=f"{KEY} x"))
        assert bad.status_code == 400
        with pytest.raises(httpx.RemoteProtocolError):
            client.post(base + CHAT, content=chat_request())
    code, err = ended(process)
    assert code == 0, err
    assert re.search(r"^moontap: replay on \S+ of 3 recorded exchanges; nothing goes", err, re.M)
    lines = err.splitlines()
    assert f"200 POST {MESSAGES}, session.flow 1 of 3 (turn 1)" in lines
    assert any(
        line.startswith(f"400 POST {MESSAGES}, moontap replay: no recorded request matches.")
        for line in lines
    )
    assert f"broke off POST {CHAT}, session.flow 3 of 3 (turn 1)" in lines
    assert "moontap: 3 requests, 2 matched, 1 not" in lines
    assert "moontap: never asked for: 1 of 3: session.flow 2 of 3 (turn 2)" in lines
    assert KEY not in f"{printed}{err}{bad.text}"


def test_pace_once_and_rules(moontap_command: Moontap, tmp_path: Path) -> None:
    save(
        tmp_path / "x.flow",
        [flow(messages_request(opening="run-1"), [b"a", b"b"], arrivals=[0, 800])],
    )
    (tmp_path / "rules.yaml").write_text(r"replay: {replace: [{pattern: 'run-\d+', with: run}]}")
    process = moontap_command.start(
        *("replay", "x.flow", "--pace", "2", "--once", "--rules", "rules.yaml")
    )
    base = f"http://127.0.0.1:{port_of(until(process, 'kimi'))}"
    body = messages_request(opening="run-22")
    with httpx.Client(trust_env=False) as client:
        reply = client.post(base + MESSAGES, content=body)
        assert (reply.text, reply.elapsed.total_seconds() < 0.39) == ("ab", False)
        assert "without --once" in client.post(base + MESSAGES, content=body).text
    assert ended(process, signal.SIGTERM)[0] == 0


def test_any_result(moontap_command: Moontap, tmp_path: Path) -> None:
    save(tmp_path / "x.flow", [flow(messages_request([("a", "ls", "one.txt")]), [b"served"])])
    process = moontap_command.start("replay", "x.flow", "--any-result")
    base = f"http://127.0.0.1:{port_of(until(process, 'kimi'))}"
    with httpx.Client(trust_env=False) as client:
        for result, command, status in (("two.txt", "ls", 200), ("one.txt", "pwd", 400)):
            body = messages_request([("b", command, result)])
            assert client.post(base + MESSAGES, content=body).status_code == status
    assert "moontap: 2 requests, 1 matched, 1 not" in ended(process)[1]


def test_a_reason_is_said_once_and_without_escapes(
    moontap_command: Moontap, recorded: Path
) -> None:
    process = moontap_command.start("replay", recorded.name)
    base = f"http://127.0.0.1:{port_of(until(process, 'kimi'))}"
    bodies = [messages_request([("a", "pwd", text)]) for text in ("\x1b[2J", "\x1b[2J", "\x9b1m")]
    with httpx.Client(trust_env=False) as client:
        said = [client.post(base + MESSAGES, content=body).text for body in bodies]
    assert said[0] == said[1] != said[2]
    _, err = ended(process)
    assert err.replace("\n", "").isprintable()
    first, again, other = (line for line in err.splitlines() if line.startswith("400 "))
    assert "now '\\x1b[2J'" in first
    assert first.endswith("Or any tool result may do: --any-result.")
    assert again == f"400 POST {MESSAGES}, refused for the same reason"
    assert "now '\\x9b1m'" in other


def test_what_to_paste_holds_nothing_that_a_shell_would_run(
    moontap_command: Moontap, tmp_path: Path
) -> None:
    """A flow file may come from a stranger."""
    paths = ["/$(touch${IFS}x)/v1/messages", "/;ls/v1/chat/completions", "/\x1b[2J/v1/messages"]
    bodies = [messages_request(), chat_request(), messages_request()]
    flows = [flow(body, path=path) for body, path in zip(bodies, paths, strict=True)]
    save(tmp_path / "x.flow", flows)
    process = moontap_command.start("replay", "x.flow")
    printed = until(process, "kimi\n")
    ended(process)
    assert "/anthropic\n" in printed
    assert not {"$", ";", "\x1b"} & set(printed)


@pytest.mark.parametrize("folder", [None, "tls"])
def test_tls(folder: str | None, moontap_command: Moontap, recorded: Path) -> None:
    more = ["--tls-dir", folder] if folder else ["--tls"]
    process = moontap_command.start("replay", recorded.name, *more)
    printed = until(process, "kimi\n")
    (authority,) = re.findall(r"^export NODE_EXTRA_CA_CERTS=(\S+) SSL_CERT_FILE=\1$", printed, re.M)
    path = moontap_command.folder / authority
    assert path.is_relative_to(moontap_command.folder) == bool(folder)
    context = ssl.create_default_context(cafile=path)
    with httpx.Client(verify=context, trust_env=False) as client:
        url = f"https://localhost:{port_of(printed)}{MESSAGES}"
        assert client.post(url, content=messages_request()).status_code == 200
    assert ended(process)[0] == 0
    assert path.exists() == bool(folder)


def test_a_damaged_file_is_served_said_and_exit_code_2(
    moontap_command: Moontap, recorded: Path
) -> None:
    recorded.write_bytes(recorded.read_bytes()[:-5])
    process = moontap_command.start("replay", recorded.name)
    base = f"http://127.0.0.1:{port_of(until(process, 'kimi'))}"
    with httpx.Client(trust_env=False) as client:
        assert client.post(base + MESSAGES, content=messages_request()).status_code == 200
    code, err = ended(process)
    assert code == 2
    assert "session.flow: left out 1 damaged record" in err
    assert "; 2 readable exchanges were used\n" in err


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nowhere.flow"], "nowhere.flow: no such file or folder"),
        (["rules.yaml"], "rules.yaml is not a flow file"),
        (["empty"], "empty holds no flow file"),
        (["empty.flow"], "empty.flow: no HTTP exchange in it"),
        (["x.flow", "--pace", "slow"], "--pace: 'slow' is no pace: original, none, or a factor"),
        (["x.flow", "--rules", "rules.yaml"], "--rules: "),
        (["x.flow", "--tls-dir", "rules.yaml"], "--tls-dir: rules.yaml cannot be written: "),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    if arguments[0] == "x.flow":
        save(tmp_path / "x.flow", [flow(messages_request())])
    save(tmp_path / "empty.flow", [])
    (tmp_path / "empty").mkdir()
    (tmp_path / "rules.yaml").write_text("nonsense: 1")
    assert main(["replay", *arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    (line,) = err.splitlines()
    assert line.startswith("moontap replay: ")
    assert said in line


def test_a_port_in_use_is_said(moontap_command: Moontap, recorded: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = moontap_command.run("replay", recorded.name, "--port", str(port))
    assert done.returncode == 2
    assert done.stderr == (f"moontap replay: --port: {port} is in use; --port 0 takes a free one\n")


# Never a connection anywhere


def test_the_sentinel_counts(sentinel: Sentinel) -> None:
    with httpx.Client(trust_env=False) as client:
        for _ in range(2):
            with pytest.raises(httpx.HTTPError):
                client.get(sentinel.url)
    assert sentinel.connections == 2


def elsewhere(url: str) -> dict[str, str]:
    """All that could send a request to another server."""
    names = ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "KIMI_BASE_URL")
    proxies = ("HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY", "https_proxy", "http_proxy")
    return dict.fromkeys((*names, *proxies), url) | {"NO_PROXY": "", "no_proxy": ""}


@pytest.mark.parametrize("agent", [ANTHROPIC, OPENAI], ids=["messages", "chat"])
def test_neither_what_matches_nor_what_does_not_goes_to_any_other_server(
    agent: str,
    moontap_command: Moontap,
    standin_url: str,
    sentinel: Sentinel,
    forked_python: Forks,
) -> None:
    """The agent's last request is missing in the recording: one that a forwarding server would
    now send on."""
    run = python(agent, forked_python.python)
    done = moontap_command.run("run", "--upstream", standin_url, *run)
    assert "All done." in done.stdout, done.stderr
    (capture,) = moontap_command.captures()
    save(capture / "traffic.flow", list(FlowFile(capture / "traffic.flow"))[:-1])
    away = elsewhere(sentinel.url)
    process = moontap_command.start("replay", str(capture), env=away)
    base = f"http://127.0.0.1:{port_of(until(process, 'kimi'))}"
    with httpx.Client(trust_env=False) as client:
        assert client.get(f"{base}/v1/models").status_code == 400
        assert client.post(base + MESSAGES, content=messages_request()).status_code == 400
    tapped = moontap_command.run("run", "--upstream", base, *run, env=away)
    code, err = ended(process)
    assert sentinel.connections == 0
    assert code == 0, err
    assert "no recorded request matches. Nearest" in tapped.stderr
    assert "the recorded one ends before messages[5]" in tapped.stderr
    assert "moontap: 6 requests, 3 matched, 3 not\n" in err

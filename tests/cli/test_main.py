"""Usage: help, version, and errors of one line. In this process: `main` is a function."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from moontap import cli
from moontap.ids import opaque


def call(*arguments: str) -> int:
    try:
        return cli.main(arguments)
    except SystemExit as ended:
        return int(ended.code or 0)


@pytest.fixture(autouse=True)
def _no_address(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL", "KIMI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("command", ["run", "proxy", "demo", "path", None])
def test_every_help_has_an_example(command: str | None, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(*([command] if command else []), "--help") == 0
    assert (
        f"example:\n  {'mitmdump' if command == 'path' else 'moontap'} " in capsys.readouterr().out
    )


def test_the_help_of_run_says_what_becomes_of_signals_and_ids(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert call("run", "--help") == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Ctrl-C is the command's; TERM from outside ends both." in said
    for style, example in (("opaque", "Bash_0_tq4k2xw7m3a"), ("native", "functions.Bash:7")):
        assert f"{style} ({example})" in said
    assert len(opaque("Bash_0", "place")) == len("Bash_0_tq4k2xw7m3a")


def test_the_version_names_what_matters(capsys: pytest.CaptureFixture[str]) -> None:
    assert call("--version") == 0
    words = capsys.readouterr().out.replace(",", "").split()
    assert words[::2] == ["moontap", "mitmproxy", "Python"]
    assert all(word[0].isdigit() for word in words[1::2])


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ([], 2, "moontap: say what to do: run, proxy, "),
        (["nonsense"], 2, "invalid choice: 'nonsense'"),
        (["run"], 2, "moontap run: no command given, as in: moontap run -- claude"),
        (["run", "--"], 2, "no command given"),
        (["run", "--port", "x", "--", "true"], 2, "'x' is not a port: 0 to 65535"),
        (["run", "--port", "65536", "--", "true"], 2, "is not a port"),
        (["run", "--rewrite", "some", "--", "true"], 2, "invalid choice: 'some'"),
        (["run", "--upstream", "nosuch", "--", "true"], 2, "--upstream: a URL begins with"),
        (["run", "--upstream-ca", "/no/such", "--", "true"], 2, "--upstream-ca: /no/such: No such"),
        (["run", "--upstream-ca", __file__, "--", "true"], 2, "holds no PEM certificate"),
        (["run", "--rules", "/no/such", "--", "true"], 2, "--rules: /no/such: cannot be read"),
        (["run", "--", "no-such-command"], 127, "no-such-command: command not found"),
        (["run", "no-such-command", "--", "x"], 127, "no-such-command: command not found"),
        (["run", "--", __file__], 126, "not executable"),
        (["proxy", "--upstream", "ftp://x"], 2, "moontap proxy: --upstream: a URL begins with"),
        (
            ["run", "--bogus", "--", "true"],
            2,
            "moontap run: unrecognized arguments: --bogus; see moontap run --help",
        ),
        (["test", "x.flow", "claude", "-p", "hi"], 2, "test: put -- before the agent's command; "),
        (["--bogus"], 2, "moontap: unrecognized arguments: --bogus; see moontap --help"),
        (["run", "--dir", "/proc/no/such", "--", "true"], 2, "--dir: /proc/no/such cannot be made"),
        (["run", "--dir", f"{__file__}/x", "--", "true"], 2, "cannot be made: Not a directory"),
        (["proxy", "--dir", "/proc/no"], 2, "moontap proxy: --dir: /proc/no cannot be made"),
        (["proxy", "extra"], 2, "unrecognized arguments: extra"),
        (["demo", "--dir", ""], 2, "moontap demo: --dir: the demo shows a capture"),
    ],
)
def test_an_error_is_one_line(
    arguments: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(*arguments) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    assert said in err


@pytest.mark.parametrize(
    "arguments",
    [["run", "--port", "PORT", "--", "true"], ["proxy", "--port", "PORT"]],
)
def test_a_port_in_use_is_one_line(
    arguments: list[str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert call(*[port if one == "PORT" else one for one in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        f"moontap {arguments[0]}: port {port} is in use; give another one, or --port 0 for any "
        "free one\n"
    )


@pytest.mark.parametrize("command", [["run", "--", "true"], ["proxy"]])
@pytest.mark.parametrize(
    ("environment", "said"),
    [
        (
            {"ANTHROPIC_BASE_URL": "https://a.example/x", "OPENAI_BASE_URL": "https://b.example"},
            "ANTHROPIC_BASE_URL names https://a.example, OPENAI_BASE_URL names https://b.example",
        ),
        ({"KIMI_BASE_URL": "gateway"}, "KIMI_BASE_URL: a URL begins with https://"),
        ({"OPENAI_BASE_URL": "http://localhost:8080/v1"}, "would be this tap itself"),
    ],
)
def test_an_unclear_upstream_is_one_line(
    command: list[str],
    environment: dict[str, str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert call(command[0], "--port", "8080", *command[1:]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"moontap {command[0]}: ")
    assert said in err
    assert "--upstream URL" in err


def test_what_is_slow_to_import_waits_until_a_command_needs_it() -> None:
    """mitmproxy's own modules take half a second, which `moontap --help` would take, too."""
    slow = ("mitmproxy.http", "mitmproxy.io", "hypercorn", "rich", "msgspec")
    code = f"import sys, moontap.cli; print([name for name in {slow} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"

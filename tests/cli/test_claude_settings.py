"""Which settings files are noticed, and what is told of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from moontap.commands import claude_settings
from moontap.tapping.upstream import parse

TAP = "http://127.0.0.1:4711"
CN = "https://api.moonshot.cn"
DIRECT = json.dumps({"env": {"ANTHROPIC_BASE_URL": f"{CN}/anthropic", "OTHER": "s3cret"}})
REMEDY = (
    "moontap run --port 8799 -- claude --settings "
    """'{"env":{"ANTHROPIC_BASE_URL":"http://127.0.0.1:8799/anthropic"}}'"""
)


def env(address: object) -> str:
    return json.dumps({"env": {"ANTHROPIC_BASE_URL": address, "OTHER": "s3cret"}})


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder that the command starts in; `home` and `config` lie in it."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def found(
    folder: Path, *command: str, given: str | None = None, **more: str
) -> claude_settings.Found | None:
    environment = {"HOME": str(folder / "home")} | more
    return claude_settings.found(
        command or ("claude",), environment, TAP, given, parse(given or CN)
    )


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("file", "more", "said"),
    [
        ("home/.claude/settings.json", {}, "~/.claude/settings.json"),
        ("config/settings.json", {"CLAUDE_CONFIG_DIR": "config"}, "in CLAUDE_CONFIG_DIR"),
        (".claude/settings.json", {}, "./.claude/settings.json"),
        (".claude/settings.local.json", {}, "./.claude/settings.local.json"),
        ("home/.claude/settings.json", {"CLAUDE_CONFIG_DIR": "config"}, None),
        ("home/.claude.json", {}, None),
    ],
)
def test_the_files_that_are_read(
    folder: Path, file: str, more: dict[str, str], said: str | None
) -> None:
    write(folder / file, DIRECT)
    noticed = found(folder, **more)
    if said is None:
        assert noticed is None
    else:
        assert noticed is not None
        assert f"{said} sets ANTHROPIC_BASE_URL" in noticed.text
        assert noticed.remedy == REMEDY
        assert "s3cret" not in str(noticed)


@pytest.mark.parametrize(
    "command",
    [
        ["python", "claude"],
        ["claude-code"],
        ["claude", "--settings", '{"env":{"ANTHROPIC_BASE_URL":"http://127.0.0.1:8799"}}'],
    ],
)
def test_a_command_that_does_not_need_it(folder: Path, command: list[str]) -> None:
    write(folder / ".claude/settings.json", DIRECT)
    assert found(folder, *command) is None
    assert found(folder, "/opt/bin/claude", "-p", "go")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[" * 100_000,
        "[1]",
        '{"env": 1}',
        '{"env": {"OTHER": "s3cret"}}',
        env(None),
        env(""),
        env(7),
        env(f"{TAP}/anthropic"),
        env(TAP),
        "\ud800".encode("utf-8", "surrogatepass").decode("latin-1"),
    ],
)
def test_of_an_odd_file_and_of_the_tap_itself_nothing_is_said(folder: Path, text: str) -> None:
    write(folder / ".claude/settings.json", text)
    assert found(folder) is None


@pytest.mark.parametrize(
    ("address", "given", "upstream", "path"),
    [
        (f"{CN}/anthropic", None, "", "/anthropic"),
        (f"{TAP}0/anthropic", None, f" --upstream {TAP}0", "/anthropic"),
        ("https://gate.example/kimi/", None, " --upstream https://gate.example", "/kimi"),
        ("https://gate.example", None, " --upstream https://gate.example", ""),
        ("https://u:s3cret@gate.example", None, " --upstream URL", "/anthropic"),
        ("https://gate.example/kimi", f"{CN}/", f" --upstream {CN}/", "/anthropic"),
    ],
)
def test_the_remedy_sends_a_files_key_to_the_files_address(
    folder: Path, address: str, given: str | None, upstream: str, path: str
) -> None:
    write(folder / ".claude/settings.json", env(address))
    noticed = found(folder, given=given)
    assert noticed is not None
    before, _, settings = noticed.remedy.partition(" --settings ")
    assert before == f"moontap run --port 8799{upstream} -- claude"
    assert json.loads(settings.strip("'")) == {
        "env": {"ANTHROPIC_BASE_URL": f"http://127.0.0.1:8799{path}"}
    }
    assert "s3cret" not in str(noticed)

"""`moontap look` as a process: a page with saved flows in it, and what it says of a bad file."""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import pytest
from mitmproxy import io
from mitmproxy.master import Master

from moontap.capture.reader import FlowFile
from moontap.commands.look import _Shown
from moontap.commands.saved import Saved
from moontap.redact.flow import Redactor
from moontap.rules import Rules
from tests.cli.commands import KEY, Moontap, files
from tests.cli.test_proxy import a_browser, until
from tests.saved import conversation

FLOWS = Path(__file__).parents[2] / "flows"


class Page:
    """What a browser would get from it."""

    def __init__(self, link: str) -> None:
        self._link, _, self.hash = link.partition("#")
        self._client = httpx.Client(trust_env=False)
        assert self._client.get(self._link, follow_redirects=True).status_code == 200

    def get(self, path: str) -> Any:
        reply = self._client.get(self._link.partition("?")[0] + path)
        assert reply.status_code == 200, reply.text
        return reply.json()

    def view(self, flow: str, side: str) -> Any:
        return self.get(f"flows/{flow}/{side}/content/auto.json")


@contextmanager
def looking(command: Moontap, *arguments: str, code: int = 0) -> Iterator[tuple[Page, list[str]]]:
    """The page, and the lines of stderr, complete once it has ended."""
    process = command.start("look", *arguments, env=a_browser(command.folder))
    said: list[str] = []
    try:
        link = until(process, "mitmweb: ").split()[-1]
        assert process.stderr
        for line in process.stderr:
            said.append(line)
            if "Ctrl-C ends it" in line:
                break
        yield Page(link), said
        process.send_signal(signal.SIGINT)
        said += process.stderr
    finally:
        process.kill()
        process.wait()
    assert process.returncode == code, said


def test_a_capture_a_damaged_file_and_anyones_flows_are_shown(moontap_command: Moontap) -> None:
    folder = moontap_command.folder
    whole = (FLOWS / "claude-code-loses-pairs.flow").read_bytes()
    capture = folder / "captures" / "20261129T131500Z-1"
    capture.mkdir(parents=True)
    (capture / "traffic.flow").write_bytes(whole)
    # The first exchanges once more, and one that breaks off.
    (folder / "cut.flow").write_bytes(whole[: len(whole) // 2])
    theirs = conversation(["pwd", "ls"], session=None)
    for number, flow in enumerate(theirs):
        flow.id = f"{number:032x}"  # mitmweb knows flows by hexadecimal digits
        flow.request.host = "llm.example.com"
        flow.request.headers["x-api-key"] = KEY
        assert flow.response
        flow.response.headers["x-echo"] = KEY
    with (folder / "theirs.flow").open("wb") as file:
        writer = io.FlowWriter(file)
        for flow in theirs:
            writer.add(flow)
    before = set(files(folder))
    with looking(moontap_command, "captures", "cut.flow", "theirs.flow", code=2) as (page, said):
        listed = page.get("flows")
        options = page.get("options")
        tapped = page.view(theirs[1].id, "request")
        raw = json.dumps(listed)
    own = list(FlowFile(capture / "traffic.flow"))
    assert len(listed) == len(own) + len(theirs)
    assert {flow["request"]["host"] for flow in listed} == {"api.moonshot.cn", "llm.example.com"}
    assert tapped["view_name"] == "Moontap-request"
    assert options["server"]["value"] is False
    assert options["moontap_dir"]["value"] == ""
    assert KEY not in raw + "".join(said)
    text = "".join(said)
    assert f"{len(listed)} exchanges; Ctrl-C ends it" in text
    assert "came more than once, shown once" in text
    assert "moontap look: cut.flow: left out 1 damaged record" in text
    # Nothing is kept; nor is a browser opened where stdout is no terminal.
    assert set(files(folder)) - {folder / "programs" / "xdg-open"} == before


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("none.flow", None, "no such file"),
        ("notes.txt", b"nothing of the kind", "is not a flow file"),
        ("empty.flow", b"", "no HTTP exchange in it"),
    ],
)
def test_what_holds_no_exchange_is_an_error(
    moontap_command: Moontap, name: str, content: bytes | None, said: str
) -> None:
    if content is not None:
        (moontap_command.folder / name).write_bytes(content)
    ended = moontap_command.run("look", name)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.startswith("moontap look: ")
    assert said in ended.stderr
    assert ended.stderr.count("\n") == 1


async def test_ended_while_it_loads_it_says_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = (FLOWS / "messages-clean.flow").read_bytes()
    middle = len(whole) // 2
    (tmp_path / "a.flow").write_bytes(whole[:middle] + b"garbage" + whole[middle:])
    shown = _Shown(Saved("look", [tmp_path / "a.flow"], bar=False), Redactor(Rules()))
    count = len(list(Saved("look", [tmp_path / "a.flow"], bar=False)))
    loading = asyncio.create_task(shown.load(cast(Master, None)))
    for _ in range(count):  # all but the last, behind the damage
        await asyncio.sleep(0)
    loading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await loading
    shown.tell(False)
    damage, missing = capsys.readouterr().err.splitlines()
    assert "left out 1 damaged record" in damage
    assert missing.endswith("ended while it was loading: 0 exchanges shown, the rest was not read")

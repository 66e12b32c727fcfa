"""The options: what is refused, and when a change takes effect."""

import asyncio
import logging
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mitmproxy import contentviews
from mitmproxy.exceptions import OptionsError
from mitmproxy.test import taddons

from moontap.addon import Moontap
from moontap.capture.metadata import LABELS
from moontap.looking.contentviews import View
from moontap.standin import TLSFiles
from tests.conftest import Start
from tests.looking.listed import listed
from tests.proxying import HOST, pairs
from tests.samples import (
    CHAT,
    MESSAGES,
    chat_events,
    chat_request,
    messages_events,
    messages_request,
)
from tests.saved import conversation
from tests.test_addon_streams import NEW_ID, blank
from tests.upstreams import Reply, Scripted, raw_upstream

pytestmark = pytest.mark.usefixtures("_no_errors")

REVERSE = f"reverse:https://{HOST}"
EVENTS = messages_events("Bash_0")
STREAM = b"".join(EVENTS)


@pytest.mark.parametrize(
    ("option", "value", "text"),
    [
        ("moontap_rewrite", "on", "'on' is not one of off, duplicates, all"),
        ("moontap_rewrite", "ALL", "'ALL' is not one of"),
        ("moontap_rewrite", "", "'' is not one of"),
        ("moontap_id_style", "short", "'short' is not one of auto, opaque, native"),
        ("moontap_hosts", ["https://api.moonshot.cn"], "'https://api.moonshot.cn' is not a host"),
        ("moontap_hosts", ["api.moonshot.cn/v1"], "is not a host name"),
        ("moontap_hosts", ["api.moonshot.cn:443"], "without scheme, port or path"),
        ("moontap_hosts", ["*.moonshot.cn"], "is not a host name"),
        ("moontap_hosts", ["api.moonshot.cn", ""], "'' is not a host name"),
        ("moontap_hosts", ["api.moonshot.cn, api.kimi.com"], "is not a host name"),
        ("moontap_rules", "{tmp}/missing.yaml", "moontap_rules: .*missing.yaml"),
        ("moontap_rules", "{tmp}", "moontap_rules: "),
        ("moontap_rules", "{tmp}/unknown.yaml", "unknown.yaml:2: .*'colour'"),
        ("moontap_rules", "{tmp}/regex.yaml", "regex.yaml:3: .*regular expression"),
        ("moontap_dir", "{tmp}/regex.yaml", "moontap_dir: .* is a file; give a folder"),
        ("moontap_dir", "~nobody-of-that-name/x", "moontap_dir: "),
        ("moontap_fold", -1, "moontap_fold: -1 is less than 0; .* 0 shows all"),
    ],
)
async def test_bad_values_are_refused_with_a_reason(
    tmp_path: Path, option: str, value: Any, text: str
) -> None:
    (tmp_path / "unknown.yaml").write_text("redact:\n  colour: red\n")
    (tmp_path / "regex.yaml").write_text("redact:\n  patterns:\n    - '('\n")
    if isinstance(value, str):
        value = value.replace("{tmp}", str(tmp_path))
    addon = Moontap()
    with taddons.context(addon) as context:
        before = getattr(context.options, option)
        with pytest.raises(OptionsError, match=text):
            context.configure(addon, **{option: value})
        assert getattr(context.options, option) == before
    assert not list(tmp_path.glob("*captures*"))


async def test_hosts_may_be_none(start: Start) -> None:
    async with start(ports={}, moontap_hosts=[]) as p:
        assert p.master.options.moontap_hosts == []


def test_a_host_may_be_an_address() -> None:
    with taddons.context(addon := Moontap()) as context:
        context.configure(addon, moontap_hosts=["192.0.2.1", "2001:DB8::1", "::1"])


async def test_rewriting_is_switched_for_the_next_request(
    start: Start, upstream_tls: TLSFiles
) -> None:
    """A reply under way goes on as it began."""
    switched = asyncio.Event()

    async def gated() -> AsyncIterator[bytes]:
        yield EVENTS[0]
        await switched.wait()
        yield b"".join(EVENTS[1:])

    async with (
        raw_upstream(Scripted(Reply(gated)), upstream_tls) as port,
        start(ports={HOST: port}, mode=REVERSE) as p,
        httpx.AsyncClient(trust_env=False, timeout=20) as client,
    ):
        got = []
        for mode in ("all", "off", "all"):
            switched.clear()
            async with client.stream("POST", p.url + MESSAGES, content=messages_request()) as reply:
                body = b""
                async for piece in reply.aiter_raw():
                    body += piece
                    p.master.options.update(moontap_rewrite=mode)
                    switched.set()
            got.append(body)
    assert [len(NEW_ID.findall(body)) for body in got] == [0, 1, 0]
    assert [blank(body) for body in got] == [STREAM] * 3


@pytest.mark.parametrize(
    ("style", "model", "new_id"),
    [
        ("auto", "kimi-k3", r"Bash_3_t[a-z2-7]{10}"),
        ("auto", "kimi-k2.6", "Bash:4"),
        ("opaque", "kimi-k2.6", r"Bash_3_t[a-z2-7]{10}"),
        ("native", "kimi-k3", "Bash:4"),
    ],
)
async def test_the_style_of_new_ids(
    start: Start, upstream_tls: TLSFiles, style: str, model: str, new_id: str
) -> None:
    async with (
        raw_upstream(Scripted(Reply(chat_events("Bash:3"))), upstream_tls) as port,
        start(
            ports={HOST: port}, mode=REVERSE, moontap_rewrite="duplicates", moontap_id_style=style
        ) as p,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        body = chat_request([("Bash:3", "ls", "x")], model=model)
        await client.post(p.url + CHAT, content=body)
    made = pairs(p.captures)[-1]
    assert made["upstream_id"] == "Bash:3"
    assert re.fullmatch(new_id, made["id"])


async def test_an_empty_dir_keeps_nothing_on_disk(
    start: Start, upstream_tls: TLSFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    async with (
        raw_upstream(Scripted(Reply(EVENTS)), upstream_tls) as port,
        start(ports={HOST: port}, mode=REVERSE, moontap_dir="", moontap_rewrite="all") as p,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        await client.post(p.url + MESSAGES, content=messages_request())
    assert not list(here.iterdir())
    assert not p.captures.exists()
    counts = p.addon.recorder.counts
    assert (counts.exchanges, counts.calls, counts.rewritten, counts.unanswered) == (1, 1, 1, 1)
    assert counts.lost == 0


async def test_a_new_dir_waits_for_a_restart(
    start: Start, upstream_tls: TLSFiles, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """One folder a run."""
    other = tmp_path / "other"
    async with (
        raw_upstream(Scripted(Reply(EVENTS)), upstream_tls) as port,
        start(ports={HOST: port}, mode=REVERSE) as p,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        await client.post(p.url + MESSAGES, content=messages_request())
        with caplog.at_level(logging.WARNING):
            p.master.options.update(moontap_dir=str(other))
        await client.post(p.url + MESSAGES, content=messages_request())
    assert "moontap_dir takes effect after a restart" in caplog.text
    assert not other.exists()
    assert p.addon.recorder.counts.exchanges == 2


async def test_rules_reach_the_capture(
    start: Start, upstream_tls: TLSFiles, tmp_path: Path
) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("limits:\n  result_bytes: 5\n")
    async with (
        raw_upstream(Scripted(Reply(EVENTS)), upstream_tls) as port,
        start(ports={HOST: port}, mode=REVERSE, moontap_rules=str(rules)) as p,
        httpx.AsyncClient(trust_env=False) as client,
    ):
        body = messages_request([("Bash_0", "ls", "0123456789")])
        await client.post(p.url + MESSAGES, content=body)
    line = pairs(p.captures)[0]
    assert (line["result"], line["result_truncated"]) == ("01234", True)


async def test_notes_come_and_go_at_once(tmp_path: Path) -> None:
    flows = conversation(["echo 1", "echo 2"], lost=frozenset({0}))
    flows[0].comment = "mine"
    async with listed(tmp_path / "captures", flows) as p:
        noted = [(flow.comment, flow.marked) for flow in flows]
        p.type("set moontap_notes=false")
        bare = [(flow.comment, flow.marked) for flow in flows]
        p.type("set moontap_notes=true")
        again = [(flow.comment, flow.marked) for flow in flows]
        labels = flows[1].metadata[LABELS]
    assert "Bash" in noted[1][0]
    assert ":red_circle:" in [mark for _, mark in noted]
    assert bare == [("mine", ""), ("", ""), ("", "")]
    assert again == noted
    assert "tool=Bash" in labels


async def test_without_notes_from_the_start(tmp_path: Path) -> None:
    flows = conversation(["echo 1", "echo 2"], lost=frozenset({0}))
    async with listed(tmp_path / "captures", flows, moontap_notes=False):
        assert {(flow.comment, flow.marked) for flow in flows} == {("", "")}


async def test_folding_changes_for_the_flow_that_is_opened_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(View, "fold", View.fold)  # of the process: put back in the end
    (flow,) = conversation([], opening="word " * 1000)
    async with listed(tmp_path / "captures", [flow]) as p:
        sizes = []
        for fold in (600, 100, 0):
            p.type(f"set moontap_fold={fold}")
            shown = contentviews.prettify_message(flow.request, flow, "moontap-request")
            sizes.append(shown.text.count("word"))
    assert sizes[2] >= 1000 > sizes[0] > sizes[1] > 10


async def test_what_an_option_says_is_when_it_takes_effect() -> None:
    with taddons.context(Moontap()) as context:
        ours = {name: it.help for name, it in context.options.items() if name[:7] == "moontap"}
    assert len(ours) == 8
    for name, text in ours.items():
        assert re.search(r"[Tt]akes effect|needs a restart", text), name

"""The commands, typed into a real mitmproxy that has a flow list, over saved flows."""

from __future__ import annotations

import gzip
import json
import logging
import os
import re
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from mitmproxy import flow as flows_
from mitmproxy import http
from mitmproxy.exceptions import CommandError

from moontap.looking.commands import MARK
from moontap.looking.sizes import size_of
from tests.looking.listed import Shown, listed
from tests.looking.rig import until
from tests.proxying import flows_of
from tests.samples import CHAT, chat_events, chat_request
from tests.saved import conversation, exchange

KEY = "sk-" + "Kq7" * 12
SESSION = "5f0c1d2e-1111-4222-8333-444455556666"


type Open = Callable[..., AbstractAsyncContextManager[Shown]]


@pytest.fixture
def shown(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> Open:
    caplog.set_level(logging.INFO)
    return partial(listed, tmp_path / "captures")


def session(count: int = 3, **more: Any) -> list[http.HTTPFlow]:
    """Claude Code's session that reuses an id, without what saved flows do not have."""
    flows = conversation(
        [f"echo {number}" for number in range(count)], authorization=f"Bearer {KEY}", **more
    )
    for flow in flows:
        flow.live = False
    return flows


async def test_pairs(shown: Open, caplog: pytest.LogCaptureFixture) -> None:
    async with shown(session()) as p:
        (said,) = p.type("moontap.pairs @all")
        (file,) = p.files("pairs-*.txt")
    gist, path = said.split("; file: ", 1)
    assert gist == "3 pairs: 3 ok; 2 ids used before in 4 flows"
    assert Path(path) == file
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    lines = file.read_text().splitlines()
    assert lines[0] == gist
    assert re.fullmatch(
        r'2  Bash  {"command":"echo 1"}  did echo 1  Bash_0 \*     Bash_0  ok  +500 ms', lines[3]
    )
    # mitmweb shows the log line by line, and a result in one.
    logged = [record.getMessage() for record in caplog.records]
    assert f"moontap.pairs: {said}" in logged
    assert set(lines[1:]) <= set(logged)


ABOUT_FLOWS = ("pairs", "findings", "conversation", "curl", "cut")


async def test_without_flows_it_is_the_one_in_focus(shown: Open) -> None:
    flows = session()
    async with shown(flows) as p:
        p.view.focus.flow = flows[1]
        for name in ABOUT_FLOWS:
            (typed,) = p.type(f"moontap.{name}")
            (posted,) = p.master.commands.call_strings(f"moontap.{name}", [])  # as mitmweb does
            assert typed.partition(";")[0] == posted.partition(";")[0] or name == "conversation"


async def test_where_there_is_no_flow_it_says_what_to_type(shown: Open) -> None:
    async with shown([]) as p:
        for name in ABOUT_FLOWS:
            for arguments, said in (("", "is in focus"), ('"~u nowhere"', "matches")):
                with pytest.raises(CommandError) as raised:
                    p.type(f"moontap.{name} {arguments}")
                assert str(raised.value) == (
                    f"no flow {said}: moontap.{name} @shown, or with a filter, "
                    f"moontap.{name} '~meta tool=Bash'"
                )


async def test_findings(shown: Open) -> None:
    async with shown(session(lost=frozenset({1}))) as p:
        (said,) = p.type("moontap.findings @all")
        (file,) = p.files("findings-*.txt")
    assert re.match(r"\d findings: .*id-reused.* in 4 flows; file: /", said)
    text = file.read_text()
    assert "see: docs/findings.md#id-reused" in text
    assert "  do: " in text


async def test_findings_of_many_flows_are_put_together_and_the_file_has_each(shown: Open) -> None:
    flows = [*session(), *session(session="s-2", first=10)]
    async with shown(flows) as p:
        p.type("moontap.findings @all")
        (file,) = p.files("findings-*.txt")
        p.view.focus.flow = flows[1]
        p.type("moontap.findings")
        (one,) = set(p.files("findings-*.txt")) - {file}
    heads = [line for line in file.read_text().splitlines() if "  id-reused" in line]
    assert heads == [
        "error  id-reused  2 times, exchanges 2 to 6",
        "error  id-reused  exchange 2",
        "error  id-reused  exchange 6",
    ]
    assert "error  id-reused  exchange 2" in one.read_text()
    assert "each of them" not in one.read_text()


async def test_flows_that_nobody_recorded_are_read(shown: Open) -> None:
    """As `view.flows.load` brings them. The result of a call stands in the next flow."""
    flows = session()
    before = [flow.get_state() for flow in flows]
    async with shown([], strange=flows) as p:
        p.view.focus.flow = flows[1]
        (said,) = p.type("moontap.pairs")
        (file,) = p.files("pairs-*.txt")
        (found,) = p.type("moontap.findings @all")
        (cut,) = p.type("moontap.cut @all")
    assert said.startswith("1 pair: 1 ok; 1 id used before in 1 flow; file: ")
    assert "did echo 1" in file.read_text()
    assert "id-reused" in found
    assert "4 exchanges" in cut
    assert [flow.get_state() for flow in flows] == before


async def test_calls_whose_result_is_to_come(shown: Open) -> None:
    async with shown(session()[:1]) as p:
        (said,) = p.type("moontap.pairs @all")
        (file,) = p.files("pairs-*.txt")
    assert said.startswith("1 pair: 1 no result yet in 1 flow")
    assert re.search(r'Bash +{"command": ?"echo 0"}', file.read_text())


async def test_nothing_is_written_without_a_folder(
    shown: Open, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with shown(session(), moontap_dir="") as p:
        assert p.type("moontap.pairs @all") == [
            "3 pairs: 3 ok; 2 ids used before in 4 flows; see the event log"
        ]
        (curl,) = p.type("moontap.curl")
        with pytest.raises(CommandError, match="empty, so say where: "):
            p.type("moontap.cut @all")
    assert curl.endswith("see the event log")
    logged = [record.getMessage() for record in caplog.records]
    assert "END_OF_BODY" in logged
    assert any('"echo 2"' in line for line in logged)
    assert not list(tmp_path.iterdir())


async def test_large_flows_around_the_one_asked_for_do_not_keep_it_from_being_read(
    shown: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They were read in their order until there was no more time."""
    flows = session(12)
    async with shown([], strange=flows) as p:
        p.view.focus.flow = flows[10]
        monkeypatch.setattr("moontap.looking.known._AROUND", size_of(flows[11], 10_000) + 100)
        assert p.type("moontap.pairs")[0].startswith("1 pair: 1 ok; 1 id used before in 1 flow; f")
        # Where its result would be was not looked at: nobody can say that it has none.
        monkeypatch.setattr("moontap.looking.known._AROUND", 100)
        assert p.type("moontap.pairs")[0].startswith("1 pair: 1 no result yet; 1 id used before in")
        monkeypatch.setattr("moontap.looking.known.LARGEST", 100)
        assert p.type("moontap.pairs")[0] == (
            "no pairs in 1 flow, 1 NOT looked at, larger than 16 MB: see `moontap explain`"
        )


async def test_of_many_flows_that_nobody_recorded_those_around_are_read(
    shown: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moontap.looking.known.MOST", 4)
    flows = session(12)
    async with shown([], strange=flows) as p:
        for at in (0, 6, 11):
            p.view.focus.flow = flows[at]
            assert p.type("moontap.pairs")[0].startswith("1 pair: 1 ok")
        (said,) = p.type("moontap.pairs @all")
    assert "in 13 flows, 9 NOT looked at, give fewer; file: " in said


async def test_many_flows_are_answered_soon(shown: Open) -> None:
    """From what is known of them, whatever they hold."""
    async with shown(session(20)) as p:
        flows = [*p.view] * 240  # 5,040
        start = time.process_time()
        (said,) = p.master.commands.call("moontap.pairs", flows)
        assert time.process_time() - start < 2
    assert said.startswith("4800 pairs: 4800 ok; 4560 ids used before in 5040 flows")


# conversation


async def test_a_conversation_is_marked_and_unmarked(shown: Open) -> None:
    mine, other = session(lost=frozenset({1})), session(session="s-2", first=10)
    async with shown([*mine, *other]) as p:
        found = [flow.marked for flow in mine]
        assert ":red_circle:" in found or ":yellow_circle:" in found
        mine[0].marked = ":star:"
        updated: list[flows_.Flow] = []

        def update(flow: flows_.Flow) -> None:
            updated.append(flow)

        p.view.sig_view_update.connect(update)
        p.view.focus.flow = mine[2]

        (said,) = p.type("moontap.conversation")
        assert [flow.marked for flow in mine] == [":star:", *[MARK] * 3]
        assert MARK not in [flow.marked for flow in other]
        assert updated == mine[1:]
        match = re.fullmatch(
            r"4 flows of one conversation, 1 with a mark of your own, which stays; the filter that "
            r"shows only these: (~meta conversation=\d+;) or (~marker speech)",
            said,
        )
        assert match
        assert set(p.type(f'view.flows.resolve "{match[1]}"')) == set(mine)
        assert set(p.type(f'view.flows.resolve "{match[2]}"')) == set(mine[1:])

        p.type("moontap.conversation")
        assert [flow.marked for flow in mine] == [":star:", *found[1:]]


async def test_a_conversation_that_nobody_recorded(shown: Open) -> None:
    mine, other = session(), session(session="s-2", first=10)
    async with shown([], strange=[*mine, *other]) as p:
        (said,) = p.type("moontap.conversation @focus")
        assert [flow.marked for flow in mine] == [MARK] * 4
        assert [flow.marked for flow in other] == [""] * 4
        p.type("moontap.conversation")
    assert said.endswith(
        "4 flows of one conversation; the filter that shows only these: ~marker speech"
    )
    assert [flow.marked for flow in mine] == [""] * 4


async def test_a_conversation_far_behind_in_a_list_that_nobody_recorded(
    shown: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moontap.looking.known.MOST", 6)
    flows = session(12)
    async with shown([], strange=flows) as p:
        p.view.focus.flow = flows[11]
        (said,) = p.type("moontap.conversation")
        assert [flow.marked for flow in flows] == [""] * 7 + [MARK] * 6
    assert said.startswith("6 flows of one conversation; ")
    assert said.endswith("~marker speech; 7 flows further off NOT looked at")


async def test_the_list_is_told_of_many_marks_in_turns_with_the_traffic(
    shown: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moontap.looking.board.TOLD", 5)
    monkeypatch.setattr("moontap.looking.board.TURN", -1.0)
    flows = session(12)
    updated: list[flows_.Flow] = []

    def update(flow: flows_.Flow) -> None:
        updated.append(flow)

    async with shown(flows) as p:
        p.view.sig_view_update.connect(update)
        p.type("moontap.conversation @all")
        assert updated == flows[:5]
        await until(lambda: len(updated) >= len(flows))
        assert updated == flows


async def test_the_conversation_of_what_is_not_read(shown: Open) -> None:
    models = exchange(b"", b"{}", path="/v1/models")
    async with shown([models]) as p:
        with pytest.raises(CommandError, match="no conversation is known"):
            p.type("moontap.conversation @all")


# curl


async def test_curl(shown: Open, tmp_path: Path) -> None:
    """The rest is in `test_curl`, where the script runs."""
    async with shown(session()) as p:
        (said,) = p.type("moontap.curl")
        (file,) = p.files("curl-*.sh")
    assert said == (f"POST /anthropic/v1/messages; set ANTHROPIC_AUTH_TOKEN; run it: bash {file}")
    text = file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert KEY not in text
    assert "curl -sSN" in text
    assert "'https://api.moonshot.cn/anthropic/v1/messages'" in text
    assert '"$ANTHROPIC_AUTH_TOKEN"' in text
    asked = subprocess.run(["bash", "-n", file], capture_output=True, check=False, timeout=20)
    assert (asked.returncode, asked.stderr) == (0, b"")


async def test_a_long_curl_without_a_folder(shown: Open) -> None:
    flow = session(opening="word " * 20_000)[0]
    async with shown([flow], moontap_dir="") as p:
        with pytest.raises(CommandError, match=r"too many to show, .* set moontap_dir"):
            p.type("moontap.curl")


async def test_curl_of_the_other_protocol(shown: Open) -> None:
    body = b"".join(chat_events())
    chat = exchange(chat_request(), body, path=CHAT, authorization=f"Bearer {KEY}")
    async with shown([chat]) as p:
        assert "set OPENAI_API_KEY" in p.type("moontap.curl @all")[0]


async def test_curl_says_a_long_path_in_short(shown: Open) -> None:
    flow = session()[0]
    flow.request.path = "/v1/messages/\x9b" + "x" * 300_000
    async with shown([], strange=[flow]) as p:
        (said,) = p.type("moontap.curl @all")
    assert len(said) < 700
    assert "\x9b" not in said


async def test_curl_refuses_what_cannot_be_sent(shown: Open) -> None:
    flow = session()[0]
    flow.request.data.scheme = b"file"
    async with shown([], strange=[flow]) as p:
        with pytest.raises(CommandError, match=r"moontap\.curl: it cannot be sent: its scheme"):
            p.type("moontap.curl @all")


async def test_curl_takes_one_flow(shown: Open) -> None:
    async with shown(session()) as p:
        with pytest.raises(CommandError, match="takes one flow, not 4"):
            p.type("moontap.curl @all")
        assert not p.files("curl-*")


# cut


async def test_cut(shown: Open, tmp_path: Path) -> None:
    out = tmp_path / "out" / "cut.flow"
    flows = session(session=SESSION)
    for number, flow in enumerate(flows):
        flow.id = f"flow-{number}"
    async with shown(flows) as p:
        p.type("moontap.conversation @all")
        (said,) = p.type(f"moontap.cut @all {out}")
        first = out.read_bytes()
        with pytest.raises(CommandError, match=r"cut.flow exists, and is not replaced"):
            p.type(f"moontap.cut @all {out}")
        assert out.read_bytes() == first
        named = [p.type("moontap.cut @focus")[0] for _ in range(2)]
        assert len(p.files("cut-*.flow")) == 2
        assert flows[0].request.headers["authorization"] == f"Bearer {KEY}"
    assert re.fullmatch(
        r"4 exchanges; replaced: \d+ × connection, \d+ × identity, 4 × secret; file: "
        + re.escape(str(out)),
        said,
    ), said
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    assert KEY.encode() not in first
    assert SESSION.encode() not in first
    assert len(set(named)) == 2
    saved = flows_of(_as_folder(tmp_path, out))
    assert [flow.id for flow in saved] == [flow.id for flow in flows]
    assert {(flow.comment, flow.marked) for flow in saved} == {("", "")}


def _as_folder(tmp_path: Path, file: Path) -> Path:
    folder = tmp_path / "as-capture"
    folder.mkdir()
    os.link(file, folder / "traffic.flow")
    return folder


async def test_cut_leaves_out_what_is_under_way(shown: Open) -> None:
    first, second, *_ = session()
    assert second.response
    second.response.timestamp_end, second.live = None, True
    async with shown([first], strange=[second]) as p:
        (said,) = p.type("moontap.cut @all")
        assert "; 1 still under way left out; file: " in said
        with pytest.raises(CommandError, match="has not ended yet"):
            p.master.commands.call("moontap.cut", [second])


async def test_cut_is_bounded(shown: Open) -> None:
    flow = session()[0]
    async with shown([], strange=[flow]) as p:
        flow.request.raw_content = b"x" * 65_000_000
        with pytest.raises(CommandError, match="1 flow of more than 64 MB would hold up"):
            p.type("moontap.cut @all")


async def test_cut_counts_all_that_a_flow_holds(shown: Open) -> None:
    first, second = session()[:2]
    first.metadata["moontap.upstream_body"] = b"data: {}\n\n" * 7_000_000
    assert second.response
    second.response.headers["content-encoding"] = "gzip"
    second.response.raw_content = gzip.compress(b"x" * 65_000_000)
    async with shown([]) as p:
        for flow in (first, second):
            with pytest.raises(CommandError, match="1 flow of more than 64 MB would hold up"):
                p.master.commands.call("moontap.cut", [flow])


async def test_cut_says_what_it_cannot_save(shown: Open, tmp_path: Path) -> None:
    deep: list[Any] = []
    for _ in range(5_000):
        deep = [deep]
    odd: dict[Any, Any] = {"lock": threading.Lock(), "deep": deep, "huge": 10**5_000, 1: "x"}
    flows = session()[:2]
    flows[0].metadata |= {**odd, "kept": [1, {"two": (None, 2.5)}]}
    out = tmp_path / "cut.flow"
    async with shown([], strange=flows) as p:
        (said,) = p.type(f"moontap.cut @all {out}")
        assert flows[0].metadata["lock"] is odd["lock"]
    assert said.startswith("2 exchanges; replaced: ")
    assert "; 4 values that another addon keeps left out; file: " in said
    saved = flows_of(_as_folder(tmp_path, out))[0]
    assert saved.metadata["kept"] == [1, {"two": [None, 2.5]}]
    assert not set(odd) & set(saved.metadata)


async def test_cut_leaves_out_what_cannot_be_cleaned(shown: Open, tmp_path: Path) -> None:
    flows = session()[:2]
    flows[0].request.timestamp_start = threading.Lock()  # type: ignore[assignment]
    async with shown([], strange=flows) as p:
        (said,) = p.type(f"moontap.cut @all {tmp_path / 'cut.flow'}")
        with pytest.raises(CommandError, match="1 exchange could not be cleaned"):
            p.master.commands.call("moontap.cut", flows[:1], str(tmp_path / "other.flow"))
    assert said.startswith("1 exchange; replaced: ")
    assert "; 1 that could not be cleaned left out; " in said


async def test_no_path_harms_what_shows_it(shown: Open, tmp_path: Path) -> None:
    flows = session()
    async with shown(flows) as p:
        with pytest.raises(CommandError, match="no name holds such a character"):
            p.master.commands.call("moontap.cut", flows, "a\0b")
        (said,) = p.master.commands.call("moontap.cut", flows, f"{tmp_path}/\x1b[2J\nx")
        with pytest.raises(CommandError) as raised:
            p.master.commands.call("moontap.cut", flows, f"{tmp_path}/\x1b[2J\nx")
    assert said.isprintable()
    assert str(raised.value).isprintable()


async def test_where_the_folder_takes_no_file_it_is_said(shown: Open, tmp_path: Path) -> None:
    async with shown(session()) as p:
        p.captures.rename(tmp_path / "away")
        p.captures.touch()
        for name in ("pairs", "findings"):
            (said,) = p.type(f"moontap.{name} @all")
            assert re.search(r"; NOT in a file: .*captures.*; see the event log$", said)
        for name in ("curl", "cut"):
            with pytest.raises(CommandError, match=rf"^moontap\.{name}: .*captures"):
                p.type(f"moontap.{name}")
        p.captures.unlink()
        (tmp_path / "away").rename(p.captures)


async def test_a_path_says_where_it_is_wherever_one_stands(
    shown: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with shown(session(), moontap_dir="captures") as p:
        (away,) = p.type("moontap.pairs @all")
        (cut,) = p.type("moontap.cut @all mine.flow")
        monkeypatch.setenv("HOME", str(tmp_path))
        (below,) = p.type("moontap.pairs @all")
        (curl,) = p.type("moontap.curl")
    assert f"; file: {tmp_path}/captures/" in away
    assert cut.endswith(f"; file: {tmp_path}/mine.flow")
    assert "; file: ~/captures/" in below
    assert "; run it: bash ~/captures/" in curl


# rewrite


async def test_rewrite(shown: Open) -> None:
    async with shown([]) as p:
        assert p.type("moontap.rewrite") == [
            "off: ids stay as the model gives them; there are: off, duplicates, all"
        ]
        (said,) = p.type("moontap.rewrite all")
        assert said.startswith("all, from the next request on: every id becomes unique")
        assert p.master.options.moontap_rewrite == "all"
        with pytest.raises(CommandError, match="'on' is not one of off, duplicates, all"):
            p.type("moontap.rewrite on")
        assert p.master.options.moontap_rewrite == "all"


# what all have in common


async def test_no_secret_and_no_control_character_is_shown(
    shown: Open, caplog: pytest.LogCaptureFixture
) -> None:
    results = {0: f"\x1b[2J the key is {KEY}", 1: "a\r\nb\x07"}
    async with shown(session(results=results)) as p:
        said = [p.type(f"moontap.{name} @all") for name in ("pairs", "findings", "cut")]
        said.append(p.type("moontap.curl"))
        files = [file.read_bytes() for file in p.captures.rglob("*") if file.is_file()]
    assert not any(KEY.encode() in content for content in files)
    shown_ = json.dumps(said) + caplog.text
    assert KEY not in shown_
    assert "\x1b" not in shown_
    assert "\x07" not in shown_


async def test_every_command_explains_itself_and_can_be_typed_in_mitmweb(shown: Open) -> None:
    async with shown([]) as p:
        ours = {
            name: it for name, it in p.master.commands.commands.items() if name[:7] == "moontap"
        }
    assert set(ours) == {
        f"moontap.{name}"
        for name in ("pairs", "findings", "conversation", "curl", "cut", "rewrite", "guard.release")
    }
    for name, it in ours.items():
        assert re.fullmatch("[a-z.]+", name)
        assert it.help


class _Window:
    def __init__(self, columns: int) -> None:
        self.columns = columns

    def get_cols_rows(self) -> tuple[int, int]:
        return self.columns, 24


@pytest.mark.parametrize("columns", [80, 100, 200])
async def test_the_console_shows_the_lines_in_its_window(
    shown: Open, columns: int, caplog: pytest.LogCaptureFixture
) -> None:
    async with shown(session()) as p:
        master: Any = p.master
        master.overlay, master.ui = print, _Window(columns)  # as its master has
        lines = p.type("moontap.pairs @all")
        (file,) = p.files("pairs-*.txt")
        caplog.clear()
        p.type("moontap.findings @all")
    assert lines[0] == "3 pairs: 3 ok; 2 ids used before in 4 flows"
    assert lines[1] == f"file: {file}"
    assert len(lines) > 5
    assert all(len(line) <= 0.8 * columns - 2 for line in lines[2:])
    assert "moontap.findings" not in caplog.text

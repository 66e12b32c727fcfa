"""mitmproxy's own three replays with our captures and our addon, as real processes.

`-nr` reads a file, `-S` serves one, `-C` sends one again. What upstream would have been is a
listener that counts who comes: `-S` forwards to the real API once it runs out, unless it is told.
"""

from __future__ import annotations

import json
import ssl
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from mitmproxy import http

from moontap.capture import metadata
from tests.e2e import rig
from tests.e2e.conftest import Once
from tests.e2e.talk import TOOLS, Talk
from tests.sentinel import Sentinel

HOST = "api.moonshot.cn"
MODES = ("off", "duplicates", "all")
STEPS = [
    {"text": "I look.", "calls": [{"name": "Bash", "arguments": {"command": "pwd"}}]},
    {
        "calls": [
            {"name": "Bash", "arguments": {"command": "ls"}},
            {"name": "Bash", "arguments": {"command": "date"}},
        ]
    },
    {"calls": [{"name": "Bash", "arguments": {"command": "id"}}]},
]
SCRIPT = {"seed": 7, "steps": STEPS, "final": "The task is done."}
PACKED = {**SCRIPT, "faults": [{"at_request": 2, "kind": "encoding", "encoding": "gzip"}]}
HEALTHY, RESUMED = "healthy", "resumed"

# Serving without a way out: what is not in the file gets 404, and nothing is dialled.
SAFE = {"connection_strategy": "lazy", "block_list": "|~all|404"}
ANY_SERVER = {"server_replay_ignore_host": "true", "server_replay_ignore_port": "true"}


def history() -> list[dict[str, Any]]:
    """A conversation saved by a client that met no tap: two calls, one id."""
    said: list[dict[str, Any]] = [{"role": "user", "content": "do it"}]
    for command in ("pwd", "ls"):
        call = {"type": "tool_use", "id": "Bash_0", "name": "Bash", "input": {"command": command}}
        result = {"type": "tool_result", "tool_use_id": "Bash_0", "content": f"saved {command}"}
        said += [
            {"role": "assistant", "content": [call]},
            {"role": "user", "content": [result]},
        ]
    return said


@contextmanager
def talking(base_url: str, which: str) -> Iterator[Talk]:
    with Talk(base_url, headers={"x-claude-code-session-id": which}) as talk:
        if which == RESUMED:
            talk.messages = history()
        yield talk


def conversations(base_url: str) -> dict[str, list[dict[str, Any]]]:
    """Both conversations to their ends, as the client has them then."""
    made = {}
    for which in (HEALTHY, RESUMED):
        with talking(base_url, which) as talk:
            talk.to_the_end()
            assert talk.text == "The task is done."
            made[which] = talk.messages
    return made


@dataclass
class Recording:
    """A run through a tap: its folder, and the conversations as the client had them."""

    folder: Path
    said: dict[str, list[dict[str, Any]]]

    @property
    def traffic(self) -> Path:
        return self.folder / "traffic.flow"

    @property
    def pairs(self) -> bytes:
        return (self.folder / "pairs.jsonl").read_bytes()

    @property
    def flows(self) -> list[http.HTTPFlow]:
        return rig.saved_flows(self.folder.parent)


@pytest.fixture(scope="module")
def recordings(once: Once, conf: Path) -> dict[str, Recording]:
    """One a mode. They name https://api.moonshot.cn, as people's own do."""
    return once("mitmproxy-replay", lambda folder: record_all(folder, conf))


def record_all(folder: Path, conf: Path) -> dict[str, Recording]:
    return {mode: record(folder / mode, conf, mode) for mode in MODES}


def record(folder: Path, conf: Path, mode: str) -> Recording:
    folder.mkdir()
    with (
        rig.standin(folder, PACKED, "--tls") as standin,
        redirected(folder, conf, [f"reverse:https://{HOST}"], standin, moontap_rewrite=mode) as tap,
    ):
        said = conversations(tap.url)
        assert tap.process.stop() == 0, tap.process.output
    return Recording(rig.run_folder(tap.captures), said)


@contextmanager
def redirected(
    folder: Path, conf: Path, modes: Sequence[str], standin: rig.Standin, **options: Any
) -> Iterator[rig.Tap]:
    """A tap for which the stand-in is api.moonshot.cn."""
    with rig.tap(
        folder,
        conf,
        modes,
        *("-s", rig.HERE / "clients" / "redirect.py"),
        env=redirect(int(standin.url.rpartition(":")[2])),
        connection_strategy="lazy",
        ssl_verify_upstream_trusted_ca=standin.ca,
        **options,
    ) as tap:
        yield tap


def redirect(port: int) -> dict[str, str]:
    return {"MOONTAP_TEST_HOST": HOST, "MOONTAP_TEST_PORT": str(port)}


# mitmdump -nr


@pytest.mark.parametrize("mode", MODES)
def test_reading_gives_the_same_log(
    recordings: dict[str, Recording], tmp_path: Path, conf: Path, mode: str
) -> None:
    recorded = recordings[mode]
    healed = [metadata.HEALED in flow.metadata for flow in recorded.flows]
    assert any(healed) is (mode != "off")
    assert len(healed) == 4 + 3
    again = rig.replay(tmp_path, conf, recorded.traffic)
    assert (again / "pairs.jsonl").read_bytes() == recorded.pairs
    assert len(recorded.pairs.splitlines()) == 4 + 5


# mitmdump -S


@contextmanager
def serving(
    folder: Path, conf: Path, flows: Path, mode: str, sentinel: Sentinel, **options: Any
) -> Iterator[rig.Tap]:
    """`mitmdump -S FLOWS -s addon/main.py`; api.moonshot.cn is the sentinel."""
    with rig.tap(
        folder,
        conf,
        [mode],
        *("-S", flows, "-s", rig.HERE / "clients" / "redirect.py"),
        env=redirect(sentinel.port),
        keepserving="true",
        **options,
    ) as tap:
        yield tap


SERVED = {
    # recorded with, served with: whether each of the two conversations goes as it was recorded
    ("off", "off"): {HEALTHY: True, RESUMED: True},
    # The reply gets ids that the recorded requests do not have.
    ("off", "all"): {HEALTHY: False, RESUMED: False},
    ("duplicates", "duplicates"): {HEALTHY: True, RESUMED: True},
    ("duplicates", "all"): {HEALTHY: False, RESUMED: False},
    # What the client got is served; but the file has a request that was healed on its way.
    ("all", "off"): {HEALTHY: True, RESUMED: False},
    # A made id stays as it is, and a history is healed in the same way as then.
    ("all", "all"): {HEALTHY: True, RESUMED: True},
}


@pytest.mark.parametrize(("recorded", "served"), SERVED)
def test_which_captures_can_be_served(
    recordings: dict[str, Recording],
    tmp_path: Path,
    conf: Path,
    sentinel: Sentinel,
    recorded: str,
    served: str,
) -> None:
    """It compares raw request bodies. Nothing is dialled, hit or miss."""
    wanted = recordings[recorded]
    mode, rewrite = f"reverse:https://{HOST}", {"moontap_rewrite": served}
    ended: dict[str, bool] = {}
    with serving(tmp_path, conf, wanted.traffic, mode, sentinel, **SAFE, **rewrite) as tap:
        for which in (HEALTHY, RESUMED):
            with talking(tap.url, which) as talk:
                try:
                    talk.to_the_end()
                except AssertionError:  # 404: not in the file
                    ended[which] = False
                else:
                    ended[which] = talk.messages == wanted.said[which]
        assert tap.process.stop() == 0
    assert ended == SERVED[recorded, served]
    assert sentinel.connections == 0
    flows = rig.saved_flows(tap.captures)
    assert {flow.is_replay for flow in flows} <= {"response", None}
    if all(ended.values()):
        # In one block: no chunks. All else is as it was.
        assert not any(metadata.CHUNKS in flow.metadata for flow in flows)
        now, then = rig.saved_pairs(tap.captures), rig.saved_pairs(wanted.folder.parent)
        assert facts(now) == facts(then)


def facts(lines: Sequence[dict[str, Any]]) -> list[list[Any]]:
    """What stays of pairs when their upstream ids, times and flows are others."""
    fields = ("status", "session", "tool", "id", "arguments", "result", "message_id", "source")
    return [[line[field] for field in fields] for line in lines]


def body(text: str) -> bytes:
    said = {"model": "kimi-k3", "max_tokens": 9, "tools": TOOLS, "stream": False}
    return json.dumps({**said, "messages": [{"role": "user", "content": text}]}).encode()


KNOWN, UNKNOWN = body("known"), body("unknown")


@pytest.fixture(scope="module")
def one_exchange(once: Once, conf: Path) -> Path:
    """A capture of one exchange."""
    return once("mitmproxy-replay-one", lambda folder: record_one(folder, conf, 1))


@pytest.fixture(scope="module")
def two_alike(once: Once, conf: Path) -> Path:
    """A capture of one request sent twice, and two replies that differ."""
    return once("mitmproxy-replay-two", lambda folder: record_one(folder, conf, 2))


def record_one(folder: Path, conf: Path, times: int) -> Path:
    with (
        rig.standin(folder, SCRIPT, "--tls") as standin,
        redirected(folder, conf, [f"reverse:https://{HOST}"], standin) as tap,
    ):
        for _ in range(times):
            assert ask(tap.url, KNOWN)[0] == "200"
        assert tap.process.stop() == 0
    return rig.run_folder(tap.captures) / "traffic.flow"


def ask(base: str, content: bytes, seconds: float = 10, **more: Any) -> tuple[str, bytes]:
    """Status and body; `-` where there was no answer."""
    with httpx.Client(trust_env=False, timeout=seconds, **more) as client:
        try:
            reply = client.post(f"{base}/anthropic/v1/messages", content=content)
        except httpx.HTTPError:
            return "-", b""
        return str(reply.status_code), reply.content


LAZY = {"connection_strategy": "lazy"}
REUSE = {"server_replay_reuse": "true"}
BLOCK = {"block_list": "|~all|404"}


def extra(what: str) -> dict[str, str]:
    return {"server_replay_extra": what}


KILL_EXTRA = {"server_replay_kill_extra": "true"}
REVERSE, REGULAR, ELSEWHERE = "reverse", "regular", "elsewhere"

RUNNING_OUT = [
    # mode, options, answers to: a known request, the same again, an unknown one; connections made
    # by then. Once the last flow is used up, nothing that is said about extra requests counts.
    (REVERSE, LAZY, "200 502 502", (0, 1, 2)),
    (REVERSE, LAZY | extra("kill"), "200 502 502", (0, 1, 2)),
    (REVERSE, LAZY | KILL_EXTRA, "200 502 502", (0, 1, 2)),
    # Reuse keeps the flows, so it never runs out, and then the options count.
    (REVERSE, LAZY | REUSE, "200 200 502", (0, 0, 1)),
    (REVERSE, LAZY | REUSE | extra("kill"), "200 200 -", (0, 0, 0)),
    (REVERSE, LAZY | REUSE | extra("404"), "200 200 404", (0, 0, 0)),
    # A block list is asked before the file is, and the file has the last word.
    (REVERSE, LAZY | BLOCK, "200 404 404", (0, 0, 0)),
    (ELSEWHERE, LAZY | BLOCK | ANY_SERVER, "200 404 404", (0, 0, 0)),
    # Eager, the default, dials for every client before there is a request to look for. (What the
    # client gets then depends on how soon the listener hangs up.)
    (REVERSE, {}, None, (1, 2, 3)),
    (REVERSE, BLOCK, None, (1, 2, 3)),
    (REGULAR, LAZY, "200 502 502", (0, 1, 2)),
    (REGULAR, LAZY | BLOCK, "200 404 404", (0, 0, 0)),
]


@pytest.mark.parametrize(
    ("mode", "options", "answers", "connections"),
    RUNNING_OUT,
    ids=[f"{mode} {' '.join(f'{k}={v}' for k, v in o.items())}" for mode, o, _, _ in RUNNING_OUT],
)
def test_what_happens_when_it_runs_out(
    one_exchange: Path,
    tmp_path: Path,
    conf: Path,
    sentinel: Sentinel,
    mode: str,
    options: dict[str, str],
    answers: str | None,
    connections: tuple[int, ...],
) -> None:
    spec = {
        REVERSE: f"reverse:https://{HOST}",
        ELSEWHERE: f"reverse:https://127.0.0.1:{sentinel.port}",
        REGULAR: "regular",
    }[mode]
    seen = []
    with serving(tmp_path, conf, one_exchange, spec, sentinel, **options) as tap:
        base = tap.url
        more: dict[str, Any] = {}
        if mode == REGULAR:
            trust = ssl.create_default_context(cafile=str(conf / "mitmproxy-ca-cert.pem"))
            base, more = f"https://{HOST}", {"proxy": tap.url, "verify": trust}
        for content in (KNOWN, KNOWN, UNKNOWN):
            status, _ = ask(base, content, **more)
            seen.append((status, sentinel.connections))
    assert [count for _, count in seen] == list(connections)
    if answers:
        assert [status for status, _ in seen] == answers.split()


def test_a_repeated_request_is_answered_in_the_recorded_order(
    two_alike: Path, tmp_path: Path, conf: Path, sentinel: Sentinel
) -> None:
    """With reuse it is the first reply for ever."""
    mode = f"reverse:https://{HOST}"
    with serving(tmp_path, conf, two_alike, mode, sentinel, **SAFE) as tap:
        in_order = [ask(tap.url, KNOWN) for _ in range(3)]
    with serving(tmp_path, conf, two_alike, mode, sentinel, name="reuse", **SAFE, **REUSE) as tap:
        reused = [ask(tap.url, KNOWN) for _ in range(3)]
    (first, second), (status, _) = in_order[:2], in_order[2]
    assert first != second
    assert status == "404"
    assert reused == [first] * 3
    assert sentinel.connections == 0


def test_a_compressed_reply_is_served_as_it_came(
    recordings: dict[str, Recording], tmp_path: Path, conf: Path, sentinel: Sentinel
) -> None:
    flow = recordings["off"].flows[1]
    assert flow.response
    assert flow.response.headers["content-encoding"] == "gzip"
    mode = f"reverse:https://{HOST}"
    with (
        serving(tmp_path, conf, recordings["off"].traffic, mode, sentinel, **SAFE) as tap,
        httpx.stream("POST", tap.url + flow.request.path, content=flow.request.content) as reply,
    ):
        assert b"".join(reply.iter_raw()) == flow.response.raw_content
    assert reply.headers["content-encoding"] == "gzip"


def test_a_reply_that_broke_off_is_served_as_if_it_had_ended(
    tmp_path: Path, conf: Path, sentinel: Sentinel
) -> None:
    """Another reason for `moontap replay`, which breaks it off again."""
    cut = {**SCRIPT, "faults": [{"always": True, "kind": "cut", "after_events": 3}]}
    with (
        rig.standin(tmp_path, cut, "--tls") as standin,
        redirected(tmp_path, conf, [f"reverse:https://{HOST}"], standin) as tap,
    ):
        streamed = KNOWN.replace(b'"stream": false', b'"stream": true')
        assert ask(tap.url, streamed) == ("-", b"")
        assert tap.process.stop() == 0
    traffic = rig.run_folder(tap.captures) / "traffic.flow"
    (flow,) = rig.saved_flows(tap.captures)
    assert flow.metadata[metadata.INCOMPLETE]
    mode = f"reverse:https://{HOST}"
    with serving(tmp_path, conf, traffic, mode, sentinel, name="serving", **SAFE) as tap:
        status, got = ask(tap.url, streamed)
    assert flow.response
    assert (status, got) == ("200", flow.response.raw_content)
    assert b"message_stop" not in got


def test_the_vendors_sdks_are_served_what_they_recorded(
    tmp_path: Path, conf: Path, sentinel: Sentinel
) -> None:
    """Both SDKs, streamed and whole, at once; recorded with `all`, served with `duplicates`."""
    mode = f"reverse:https://{HOST}"
    with (
        rig.standin(tmp_path, SCRIPT, "--tls") as standin,
        redirected(tmp_path, conf, [mode], standin, moontap_rewrite="all") as tap,
    ):
        recorded = sdk_agents(tmp_path / "first", tap.url)
        assert tap.process.stop() == 0
    traffic = rig.run_folder(tap.captures) / "traffic.flow"
    options = {**SAFE, "moontap_rewrite": "duplicates"}
    with serving(tmp_path, conf, traffic, mode, sentinel, name="serving", **options) as tap:
        served = sdk_agents(tmp_path / "again", tap.url)
    assert served == recorded
    assert recorded["openai"].count("The task is done.") == 2
    assert recorded["anthropic"].count("The task is done.") == 2
    assert sentinel.connections == 0


def sdk_agents(folder: Path, url: str) -> dict[str, str]:
    env = {
        "anthropic": {"ANTHROPIC_BASE_URL": f"{url}/anthropic", "ANTHROPIC_API_KEY": "made-up"},
        "openai": {"OPENAI_BASE_URL": f"{url}/v1", "OPENAI_API_KEY": "made-up"},
    }
    with ExitStack() as stack:
        programs = {
            sdk: stack.enter_context(
                rig.running(
                    [sys.executable, rig.HERE / "clients" / "sdk_agent.py", sdk], folder, sdk, own
                )
            )
            for sdk, own in env.items()
        }
        for program in programs.values():
            assert program.wait(60) == 0, program.output
        return {sdk: program.output for sdk, program in programs.items()}


# mitmdump -C


def send_again(
    folder: Path, conf: Path, flows: Path, standin: rig.Standin, *arguments: str, **options: Any
) -> Path:
    """`mitmdump -n -C FLOWS -s addon/main.py`, to its end; the captures folder."""
    captures = folder / "sent.captures"
    command: list[str | Path] = [Path(sys.executable).with_name("mitmdump"), "-n", "-C", flows]
    command += ["-s", rig.MAIN, "-s", rig.HERE / "clients" / "redirect.py", *arguments]
    trust = standin.ca
    for option, value in {
        "confdir": conf,
        "moontap_dir": captures,
        "ssl_verify_upstream_trusted_ca": trust,
        **options,
    }.items():
        command += ["--set", f"{option}={value}"]
    env = redirect(int(standin.url.rpartition(":")[2]))
    with rig.running(command, folder, "sent", env) as process:
        assert process.wait(60) == 0, process.output
    return captures


@pytest.mark.parametrize(
    ("recorded", "sent"),
    [("off", "off"), ("off", "all"), ("duplicates", "off"), ("all", "duplicates"), ("all", "all")],
)
def test_requests_are_sent_again(
    recordings: dict[str, Recording], tmp_path: Path, conf: Path, recorded: str, sent: str
) -> None:
    """Against a stand-in with other message ids: nothing of the first run shows in the second."""
    was = recordings[recorded]
    with rig.standin(tmp_path, {**SCRIPT, "seed": 8}, "--tls") as standin:
        captures = send_again(tmp_path, conf, was.traffic, standin, moontap_rewrite=sent)
        received = standin.received
    flows = rig.saved_flows(captures)
    assert len(flows) == len(received) == len(was.flows)
    for flow, first, got in zip(flows, was.flows, received, strict=True):
        assert flow.response
        assert first.request.content
        assert flow.is_replay == "request"
        answered = got["answer"]
        if sent == "off":
            # As recorded: what went upstream then, healed or not, goes there again.
            assert flow.request.content == first.request.content
        assert json.loads(flow.request.content or b"") == got["body"]
        upstream = flow.metadata.get(metadata.UPSTREAM_BODY, flow.response.raw_content) or b""
        assert answered["message_id"].encode() in upstream
        assert (metadata.UPSTREAM_BODY in flow.metadata) is (
            bool(flow.metadata[metadata.REWRITTEN])
        )
        assert sum(size for size, _ in flow.metadata[metadata.CHUNKS]) == len(upstream)
        assert metadata.UPSTREAM_ENCODING not in flow.metadata
        assert flow.metadata[metadata.CALLS] == len(answered["ids"])
    # With rewriting, what was recorded is healed already.
    healed = [metadata.HEALED in flow.metadata for flow in flows]
    assert any(healed) is (recorded == "off" and sent != "off")
    # The conversations go on with the calls of the first run: each is there once, with its result.
    now, then = rig.saved_pairs(captures), rig.saved_pairs(was.folder.parent)
    fields = ("session", "arguments", "result", "status")
    answered = [line for line in now if line["status"] != "unanswered"]
    assert sorted(str([line[field] for field in fields]) for line in answered) == sorted(
        str([line[field] for field in fields]) for line in then
    )
    # A call that was made now under another id than then can but go unanswered.
    made = {(got["answer"]["message_id"], id_) for got in received for id_ in got["answer"]["ids"]}
    live = {(line["message_id"], line["upstream_id"]) for line in now if line["source"] == "live"}
    assert live <= made
    if recorded == sent == "off":
        assert live == made  # K3 gave the same ids again


def test_the_same_replies_give_the_same_pairs(
    recordings: dict[str, Recording], tmp_path: Path, conf: Path
) -> None:
    """Same message ids, same new ids: then the requests sent again follow on the new replies."""
    was = recordings["all"]
    with rig.standin(tmp_path, SCRIPT, "--tls") as standin:
        captures = send_again(tmp_path, conf, was.traffic, standin, moontap_rewrite="all")

    def healthy(captured: Path) -> list[list[Any]]:
        lines = [line for line in rig.saved_pairs(captured) if line["session"] == HEALTHY]
        assert {line["source"] for line in lines} == {"live"}
        return [[*facts([line])[0], line["upstream_id"], line["rewritten"]] for line in lines]

    assert healthy(captures) == healthy(was.folder.parent)
    assert len(healthy(captures)) == 4

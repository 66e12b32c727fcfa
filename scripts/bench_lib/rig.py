"""Starts the upstream and one mitmdump or mitmweb a lane, hands out lanes, stops all and removes
its folder.

Each lane is the same chain on loopback: client, mitmproxy, upstream. Lanes stand side by side for
a whole section, so that a round can visit all of them within moments. Never signals a process it
did not start.
"""

import re
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from moontap.findings.codes import codes

from .client import Connection, Reply
from .errors import BenchError
from .payload import Conversation

HERE = Path(__file__).parent
BARE, CONTROL, MODES = "bare", "bare again", ("off", "duplicates", "all")
UNSAVED = "all, no disk"
# The control has no addon either: how far its ratio is from 1 is the noise of this machine. Bare
# mitmproxy saves nothing, so one lane saves nothing either: the rest is the cost of saving.
LANES = (BARE, CONTROL, *MODES, UNSAVED)
UNCHECKED = "no checks"
"""The addon as `off`, with every check of the diagnosis switched off by a rules file."""
TOKEN = "made-up-for-the-benchmark"
"""With which mitmweb lets a page in."""
_START_S = 60
_NEW_SESSION_AFTER = 20


@dataclass(slots=True)
class Lane:
    """One mitmproxy and the agent before it. web: where its page is; 0: it has none."""

    name: str
    pid: int
    connection: Connection
    web: int = 0
    conversations: dict[int, Conversation] = field(default_factory=dict)

    def turn(self, size: int, events: int = 10, pace_us: int = 0, mint: str = "unique") -> Reply:
        """One exchange of the conversation of that size; the next one will be a pair longer."""
        conversation = self.conversations.get(size) or Conversation(size)
        query = f"events={events}&pace_us={pace_us}&mint={mint}"
        reply = self.connection.exchange(query, conversation.session, conversation.body())
        conversation.answer(reply.call_id)
        self.conversations[size] = conversation
        # A large history is worth its making, and hardly changes size in a run.
        if conversation.turns >= _NEW_SESSION_AFTER and size < 1_000_000:
            del self.conversations[size]
        return reply


@contextmanager
def rig(addon: Path, names: Sequence[str] = LANES, *, web: bool = False) -> Iterator[list[Lane]]:
    """These lanes, started and shown to do what their names say; all gone at the end.

    web: each is a mitmweb, not a mitmdump.
    Raises BenchError: a process does not start, does not rewrite as it should, keeps no capture,
    or has logged an error.
    """
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="moontap-bench-")))
        upstream = subprocess.Popen(
            [sys.executable, "-P", HERE / "upstream.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        stack.callback(_stop, upstream)
        assert upstream.stdout
        to = int(upstream.stdout.readline() or 0)
        ports = {name: _free_port() for name in names}
        pages = {name: _free_port() if web else 0 for name in names}
        started = [
            _start(name, port, to, folder / str(port), addon, pages[name])
            for name, port in ports.items()
        ]
        for process in started:
            stack.callback(_stop, process)
        try:
            lanes = []
            for (name, port), process in zip(ports.items(), started, strict=True):
                _wait_for(process, port, folder / str(port) / "log")
                connection = stack.enter_context(Connection(name, port))
                lanes.append(Lane(name, process.pid, connection, pages[name]))
                _check_ids(lanes[-1])
            yield lanes
        except BenchError:
            # A proxy's own complaint says more than what it looked like from outside.
            _check_logs(ports, folder)
            raise
        _check_logs(ports, folder)
        _check_captures(ports, folder)


def rotated[T](items: list[T], by: int) -> list[T]:
    """The same items, begun at another place: no lane is always the one after a slow lane."""
    by %= len(items)
    return items[by:] + items[:by]


def rounds(
    lanes: list[Lane],
    number: int,
    sample: Callable[[Lane], dict[str, float]],
    pause: float = 0.0,
) -> dict[str, dict[str, list[float]]]:
    """Visit all lanes `number` times: what `sample` names -> lane -> one value a round.

    pause: seconds before each, in which a browser paints what the lane before has told it.
    """
    found: dict[str, dict[str, list[float]]] = {}
    for at in range(number):
        for lane in rotated(lanes, at):
            time.sleep(pause)
            for name, value in sample(lane).items():
                columns = found.setdefault(name, {lane.name: [] for lane in lanes})
                columns[lane.name].append(value)
    return found


def _start(
    name: str, port: int, to: int, folder: Path, addon: Path, page: int
) -> subprocess.Popen[bytes]:
    folder.mkdir()
    settings: dict[str, object] = {
        "confdir": folder / "conf",
        "flow_detail": 0,
        "termlog_verbosity": "warn",
    }
    script = HERE / "bare.py"
    if name in MODES:
        script = addon
        settings |= {"moontap_rewrite": name, "moontap_dir": folder / "captures"}
    elif name == UNSAVED:
        script = addon
        settings |= {"moontap_rewrite": "all", "moontap_dir": ""}
    elif name == UNCHECKED:
        script = addon
        settings |= {"moontap_dir": folder / "captures", "moontap_rules": folder / "rules.yaml"}
        (folder / "rules.yaml").write_text(f"findings: {{off: [{', '.join(codes())}]}}\n")
    program = "mitmdump"
    if page:
        program = "mitmweb"
        settings |= {"web_port": page, "web_open_browser": "false", "web_password": TOKEN}
        del settings["flow_detail"]  # of mitmdump
    command: list[str | Path] = [Path(sys.executable).with_name(program), "-s", script]
    command += ["--mode", f"reverse:http://127.0.0.1:{to}@127.0.0.1:{port}"]
    for option, value in settings.items():
        command += ["--set", f"{option}={value}"]
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, cwd=folder
        )


def _free_port() -> int:
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise BenchError(f"mitmproxy did not start: {log.read_text().strip() or 'no reason given'}")


def _check_ids(lane: Lane) -> None:
    """A lane that fails open would look fast."""
    same = [lane.turn(1_001, mint="reused").call_id == "Bash_0" for _ in range(2)]
    del lane.conversations[1_001]
    changing = {"duplicates": [True, False], "all": [False, False], UNSAVED: [False, False]}
    expected = changing.get(lane.name, [True, True])
    if same != expected:
        raise BenchError(f"the lane {lane.name!r} does not treat call ids as it should: {same}")


def _check_logs(ports: Mapping[str, int], folder: Path) -> None:
    for name, port in ports.items():
        log = (folder / str(port) / "log").read_text()
        if "Traceback" in log or " failed: " in log or re.search(r"^Error", log, re.MULTILINE):
            raise BenchError(f"the lane {name!r} logged errors: {log[:2_000]}")


def _check_captures(ports: Mapping[str, int], folder: Path) -> None:
    for name, port in ports.items():
        flows = (folder / str(port)).glob("captures/*/traffic.flow")
        if name in (*MODES, UNCHECKED) and not any(file.stat().st_size for file in flows):
            raise BenchError(f"the lane {name!r} kept no capture")


def _stop(process: subprocess.Popen[bytes] | subprocess.Popen[str]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe:
            pipe.close()

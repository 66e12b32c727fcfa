"""mitmweb with the addon against mitmweb without it, a page open on each; and what a person waits
for there: a large request, a long stream, a long list. Rows come out.
"""

import io
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from statistics import median

from mitmproxy import http
from mitmproxy.io import tnetstring

from .bigcapture import exchange, exchanges
from .errors import BenchError
from .payload import Conversation
from .procfs import memory_mib, settled_cpu_ns
from .rig import BARE, CONTROL, HERE, TOKEN, Lane, rig, rounds
from .sections import SIZES, Plan
from .stats import Measure
from .webclient import Web

OURS = ("off", "all")
_LIST = "off"
_TARGET = 1.15
_SECOND = 1_000.0  # ms
_PAUSE = 0.03
_REQUEST = 5_000_000
_EVENTS = 1_000  # of text, and as many of arguments
_SMALL = 2_000
_RARE = 50


@dataclass(slots=True)
class Pages:
    """What looks at the lanes, in their order. looker: its name and version."""

    looker: str
    process: subprocess.Popen[str]

    def put(self, page: int, rows: int, text: str) -> float | None:
        """Milliseconds until a filter has left at most so many rows; None without a browser."""
        assert self.process.stdin
        assert self.process.stdout
        print(page, rows, text, file=self.process.stdin, flush=True)
        answer = self.process.stdout.readline().strip()
        if not answer:
            raise BenchError("the pages did not react to a filter")
        return None if answer == "-" else float(answer)


def web(plan: Plan, flows: int, browser: bool) -> tuple[str, list[Measure]]:
    """What looked on, and the rows. flows: how many the long list has."""
    names = (BARE, CONTROL, *OURS)
    with rig(plan.addon, names, web=True) as lanes, opened(lanes, browser) as pages:
        looker = pages.looker
        rows = live(lanes, plan)
    # Fresh ones, because their memory is read.
    with rig(plan.addon, (BARE, _LIST), web=True) as lanes, opened(lanes, browser) as pages:
        rows += waits(lanes, pages, plan, flows)
    return looker, rows


@contextmanager
def opened(lanes: list[Lane], browser: bool) -> Iterator[Pages]:
    """A page on each lane. Raises BenchError."""
    command = [sys.executable, "-P", str(HERE / "pages.py")]
    command += [] if browser else ["--no-browser"]
    command += [f"http://127.0.0.1:{lane.web}/?token={TOKEN}" for lane in lanes]
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True
        )
        assert process.stdin
        assert process.stdout
        try:
            looker = process.stdout.readline().strip()
            if not looker:
                process.wait(20)
                said.seek(0)
                raise BenchError(f"no page could be opened: {said.read().strip()[-500:]}")
            yield Pages(looker, process)
        finally:
            process.stdin.close()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()


# While a session runs


def live(lanes: list[Lane], plan: Plan) -> list[Measure]:
    """What the addon adds while a session runs and a page shows it."""

    def first_byte(size: int) -> Callable[[Lane], dict[str, float]]:
        return lambda lane: {"": lane.turn(size, events=2).first_byte / 1e6}

    def paced(lane: Lane) -> dict[str, float]:
        delays = lane.turn(1_000, plan.paced_events, pace_us=5_000).delays()
        return {"": median(delays) / 1e6}

    def flood(lane: Lane) -> dict[str, float]:
        reply = lane.turn(1_000, plan.flood_events)
        return {"": reply.streaming / 1e3 / (2 * plan.flood_events)}

    rows = []
    for label, size in list(SIZES.items())[:2]:
        found = _in_turns(lanes, first_byte(size), plan.rounds, plan.exchanges)
        rows.append(_compared(f"first byte, {label} request", "ms", found))
    found = _in_turns(lanes, paced, plan.rounds, 1)
    rows.append(_compared("chunk, one each 5 ms", "ms", found))
    found = _in_turns(lanes, flood, 2 * plan.rounds, 1)
    rows.append(_compared("chunk, flooding", "µs", found))
    return rows


def _in_turns(
    lanes: list[Lane], sample: Callable[[Lane], dict[str, float]], number: int, each: int
) -> dict[str, list[float]]:
    """lane -> a value a round, each the median of so many."""
    rounds(lanes, 2, sample, _PAUSE)
    singles = rounds(lanes, number * each, sample, _PAUSE)[""]
    return {
        lane: [median(values[at : at + each]) for at in range(0, len(values), each)]
        for lane, values in singles.items()
    }


def _compared(name: str, unit: str, found: dict[str, list[float]]) -> Measure:
    ours = tuple(lane for lane in OURS if lane in found)
    return Measure("web", f"mitmweb: {name}", unit, found, _TARGET, ours)


# What a person waits for


def waits(lanes: list[Lane], pages: Pages, plan: Plan, flows: int) -> list[Measure]:
    """Views of what is large, and a list of so many flows. lanes: a bare one, and ours."""
    return [*_views(lanes, plan), *_list(lanes, pages, flows, plan)]


def _views(lanes: list[Lane], plan: Plan) -> list[Measure]:
    """Against what mitmweb shows of the same by itself."""
    conversation = Conversation(_REQUEST)
    large, _ = exchange(conversation, 1, _EVENTS)
    loaded = _file([large])
    webs = {lane.name: Web(lane.web) for lane in lanes}
    for one in webs.values():
        one.load(loaded)
    shown = [
        (f"a request of {_REQUEST // 1_000_000} MB", "request", "Moontap-request"),
        (f"a reply of {2 * _EVENTS:,} deltas", "response", "Moontap-reply"),
        (f"{2 * _EVENTS:,} deltas as events", "response", "Moontap-events"),
    ]

    def rendered(message: str, view: str) -> Callable[[Lane], dict[str, float]]:
        def sample(lane: Lane) -> dict[str, float]:
            wanted = view if lane.name == _LIST else "auto"
            seconds, text = webs[lane.name].render(large.id, message, wanted)
            if lane.name == _LIST and text.startswith("# shown raw"):
                raise BenchError(f"{view} shows nothing but bytes: {text[:200]}")
            return {"": seconds * 1e3}

        return sample

    rows = []
    for name, message, view in shown:
        found = rounds(lanes, min(plan.rounds, 5), rendered(message, view), _PAUSE)[""]
        rows.append(Measure("web", f"{name} shown", "ms", found, None, (_LIST,), _SECOND))
    return rows


def _list(lanes: list[Lane], pages: Pages, count: int, plan: Plan) -> list[Measure]:
    flows = [_at(number, flow) for number, flow in enumerate(islice(exchanges(_SMALL), count), 1)]
    file = _file(flows)
    webs = {lane.name: Web(lane.web) for lane in lanes}
    few = min(plan.rounds, 5)

    def load(lane: Lane) -> dict[str, float]:
        seconds = webs[lane.name].load(file)
        _at_rest(lane)
        return {"": seconds}

    def listed(lane: Lane) -> dict[str, float]:
        started = time.perf_counter()
        listed = json.loads(webs[lane.name].get("/flows"))
        if len(listed) != count:
            raise BenchError(f"{lane.name}: {len(listed):,} of {count:,} flows are listed")
        return {"": (time.perf_counter() - started) * 1e3}

    def filtered(lane: Lane) -> dict[str, float]:
        seconds, matching = webs[lane.name].filter("~meta tool=Bash")
        if lane.name == _LIST and matching != count - count // _RARE:
            raise BenchError(f"~meta tool=Bash finds {matching:,} of {count:,} flows")
        return {"": seconds * 1e3}

    def updated(lane: Lane) -> dict[str, float]:
        return {"": webs[lane.name].update() * 1e3}

    each = f"{count:,} flows"
    rows = [_row(f"{each} loaded", "s", rounds(lanes, 1, load)[""])]
    size = {lane.name: [memory_mib(lane.pid)[0]] for lane in lanes}
    rows.append(Measure("web", f"RSS with {each}", "MiB", size))
    rows.append(_row(f"GET /flows, {each}", "ms", rounds(lanes, few, listed, _PAUSE)[""]))
    found = rounds(lanes, few, filtered, _PAUSE)[""]
    rows.append(_row(f"~meta tool=Bash, {each}", "ms", found, _SECOND))
    rows.append(_row(f"one flow updated, {each}", "ms", rounds(lanes, few, updated, _PAUSE)[""]))

    def typed(lane: Lane) -> dict[str, float]:
        # Not ~meta, which the page of a bare mitmweb does not take.
        milliseconds = pages.put(lanes.index(lane), few_rows, f"~hq {session}")
        if milliseconds is None or milliseconds < 0:
            raise BenchError(f"{lane.name}: the list in the page does not follow its filter")
        return {"": milliseconds}

    session = flows[0].request.headers["x-claude-code-session-id"]
    few_rows = sum(flow.request.headers["x-claude-code-session-id"] == session for flow in flows)
    if pages.put(0, count, "~all") is not None:
        found = rounds(lanes, few, typed, 0.5)[""]
        rows.append(_row(f"a filter in the page, {each}", "ms", found, _SECOND))
    return rows


def _at_rest(lane: Lane) -> None:
    """Once its page has been told of thousands of flows, which takes it longer than an exchange."""
    for tries_left in reversed(range(6)):
        try:
            settled_cpu_ns(lane.pid)
            return
        except BenchError:
            if not tries_left:
                raise


def _row(
    name: str, unit: str, found: dict[str, list[float]], limit: float | None = None
) -> Measure:
    return Measure("web", name, unit, found, None, (_LIST,), limit)


def _at(number: int, flow: http.HTTPFlow) -> http.HTTPFlow:
    """One in so many calls another tool, so that there is something to find."""
    assert flow.response
    if number % _RARE == 0:
        for name, body in list(flow.metadata.items()):
            if isinstance(body, bytes):
                flow.metadata[name] = body.replace(b'"name":"Bash"', b'"name":"Read"')
        body = flow.response.raw_content or b""
        flow.response.raw_content = body.replace(b'"name":"Bash"', b'"name":"Read"')
    return flow


def _file(flows: list[http.HTTPFlow]) -> bytes:
    written = io.BytesIO()
    for flow in flows:
        written.write(tnetstring.dumps(flow.get_state()))
    return written.getvalue()

"""Framing, rewriting and request reading alone, in this process: time per byte, and that it does
not grow with the length of the stream or body.

A row each for what is run, the shape of its input and how that is cut. The columns are lengths,
so a ratio is the time per byte against that of the shortest.
"""

import time
from collections.abc import Callable
from functools import partial

from moontap.ids import Mode, Namer, Style
from moontap.rewrite import CallIds, StreamRewriter
from moontap.wire.history import HistoryReader
from moontap.wire.protocol import ANTHROPIC
from moontap.wire.sse import Framer

from .payload import Conversation
from .stats import Measure
from .upstream import reply

_KIB, _MIB = 1 << 10, 1 << 20
_LINEAR = 1.5
_COLUMNS = {"shortest": 1, "4 times": 4, "16 times": 16}


def wire(repeats: int, shortest: int = _MIB) -> list[Measure]:
    """Streams of many small events and of one endless event, in large chunks and in single bytes;
    and request bodies.

    shortest: bytes of the shortest stream in large chunks; the others are a fraction of it.
    """
    cuts = (("64 KiB", 64 * _KIB, shortest), ("bytes", 1, shortest // 16))
    rows = [
        _row(f"{name}, {shape} in {cut}", _fed(feeder, chunk), make, size, repeats)
        for name, feeder in (("framing", _framer), ("rewriting", _rewriter))
        for shape, make in (("events", many_events), ("one event", one_event))
        for cut, chunk, size in cuts
    ]
    # The second reader has seen the body before in all rounds but the first, as with each new turn.
    readers = (
        ("reading a request", ANTHROPIC.read_request),
        ("reading it again", partial(HistoryReader().read, ANTHROPIC)),
    )
    rows += [_row(name, read, _request, shortest // 4, repeats) for name, read in readers]
    return rows


def many_events(size: int) -> bytes:
    """At least that many bytes of streamed replies, as the upstream here sends them."""
    body = b"".join(c[c.index(b"\r\n") + 2 : -2] for c in reply(500, False, False))
    return body * (size // len(body) + 1)


def one_event(size: int) -> bytes:
    """An event whose data does not end: what a framer that scans anew on each chunk drowns in."""
    return b'event: x\ndata: {"a":"' + b"x" * size + b'"}\n\n'


def _request(size: int) -> bytes:
    return Conversation(size).body()


def _framer() -> Callable[[bytes], object]:
    return Framer().feed


def _rewriter() -> Callable[[bytes], object]:
    return StreamRewriter(
        ANTHROPIC, CallIds(Namer(Mode.ALL, Style.OPAQUE, ()), lambda: "none")
    ).feed


def _fed(feeder: Callable[[], Callable[[bytes], object]], chunk: int) -> Callable[[bytes], object]:
    def run(stream: bytes) -> None:
        feed = feeder()
        for at in range(0, len(stream), chunk):
            feed(stream[at : at + chunk])

    return run


def _row(
    name: str,
    run: Callable[[bytes], object],
    make: Callable[[int], bytes],
    shortest: int,
    repeats: int,
) -> Measure:
    inputs = {column: make(shortest * times) for column, times in _COLUMNS.items()}
    samples: dict[str, list[float]] = {column: [] for column in inputs}
    for _ in range(repeats):
        for column, given in inputs.items():
            started = time.perf_counter_ns()
            run(given)
            samples[column].append((time.perf_counter_ns() - started) / len(given))
    label = f"{shortest // _MIB} MiB" if shortest >= _MIB else f"{shortest // _KIB} KiB"
    judged = tuple(samples)[1:]
    return Measure("wire", f"{name}, {label}", "ns/byte", samples, _LINEAR, judged)

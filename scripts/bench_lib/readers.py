"""One reading of a flow file, in a process of its own: `readers.py HOW FILE`.

HOW is a key of `HOWS`. It prints a JSON object with the seconds that it took, imports left out, and
the peak of its resident memory in MiB. Run as a file: imports nothing beside it.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path


def bare(file: Path) -> Callable[[], object]:
    """What the others are compared with: mitmproxy's reader, and nothing done with the flows."""
    from mitmproxy.io import FlowReader

    def read() -> None:
        with file.open("rb") as opened:
            for _ in FlowReader(opened).stream():
                pass

    return read


def ours(file: Path) -> Callable[[], object]:
    from moontap.capture.reader import FlowFile

    def read() -> None:
        for _ in FlowFile(file):
            pass

    return read


def pairs(file: Path) -> Callable[[], object]:
    """`moontap pairs --jsonl`: read, mask, pair and write every line."""
    from moontap import cli
    from moontap.care import relog as _relog  # noqa: F401  imported before the clock runs
    from moontap.commands import saved as _saved  # noqa: F401

    return lambda: cli.main(["pairs", "--jsonl", str(file)])


def index(file: Path) -> Callable[[], object]:
    """What `moontap replay` does before it serves."""
    from moontap.replay.library import load
    from moontap.rules import Rules

    return lambda: load([file], Rules())


HOWS: dict[str, Callable[[Path], Callable[[], object]]] = {
    "mitmproxy's reader": bare,
    "moontap's reader": ours,
    "pairs --jsonl": pairs,
    "replay's index": index,
}


def _peak_mib() -> float:
    """Not by getrusage: after a fork its figure is the parent's where that was larger."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def main() -> None:
    run = HOWS[sys.argv[1]](Path(sys.argv[2]))
    report = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    started = time.perf_counter()
    run()
    sys.stdout.flush()
    seconds = time.perf_counter() - started
    os.write(report, json.dumps({"seconds": seconds, "peak_mib": _peak_mib()}).encode() + b"\n")


if __name__ == "__main__":
    main()

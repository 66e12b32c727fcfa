"""Reading a large capture: how fast, against mitmproxy's own bare reader, and in how much memory.

A file is made in the temporary folder and read in processes of their own, in turns, round by round.
The columns are ways to read it, so a ratio of 2 is half the speed of the bare reader.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from .bigcapture import write
from .errors import BenchError
from .readers import HOWS
from .rig import HERE, rotated
from .stats import Measure

_HALF_THE_SPEED = 2.0
# Sessions are remembered, up to a number of them that no run of this size reaches.
_LITTLE_GROWTH = 1.25
_SMALLER = 4
_NAMES = list(HOWS)


def reading(rounds: int, size: int) -> list[Measure]:
    """size: bytes of the capture; a second one of a quarter shows whether memory grows with it."""
    with tempfile.TemporaryDirectory(prefix="moontap-bench-") as folder:
        large, small = Path(folder) / "large.flow", Path(folder) / "small.flow"
        write(large, size)
        write(small, size // _SMALLER)
        exact = large.stat().st_size
        speed: dict[str, list[float]] = {name: [] for name in _NAMES}
        peak: dict[str, list[float]] = {name: [] for name in _NAMES}
        growth: dict[str, list[float]] = {name: [] for name in _NAMES}
        for at in range(rounds):
            for name in rotated(_NAMES, at):
                seconds, most = _read(name, large)
                speed[name].append(seconds * 1e9 / exact)
                peak[name].append(most)
        for name in _NAMES:
            growth[name].append(peak[name][0] / _read(name, small)[1])
    mb = f"{size // 1_000_000} MB"
    less = f"{size // _SMALLER // 1_000_000} MB"
    return [
        Measure("reading", f"reading {mb}", "ns/byte", speed, _HALF_THE_SPEED, (_NAMES[1],)),
        Measure("reading", f"peak RSS, reading {mb}", "MiB", peak),
        Measure(
            "reading",
            f"peak RSS, {mb} / {less}",
            "times",
            growth,
            _LITTLE_GROWTH,
            tuple(_NAMES[1:]),
        ),
    ]


def _read(name: str, file: Path) -> tuple[float, float]:
    """Seconds, and the peak of memory in MiB."""
    done = subprocess.run(
        [sys.executable, "-P", HERE / "readers.py", name, file],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    if done.returncode or done.stderr:
        raise BenchError(f"{name} failed on the capture: {done.stderr.strip()[-500:]}")
    found = json.loads(done.stdout)
    return found["seconds"], found["peak_mib"]

"""CPU time and memory of another process, as Linux tells them. Reads only."""

import time
from pathlib import Path

from .errors import BenchError

_IDLE_NS = 300_000


def cpu_ns(pid: int) -> int:
    """User and system time of all threads, ended ones too, in ns.

    The clock id of another process is made as clock_getcpuclockid(3) does; /proc/PID/stat counts
    in steps of 10 ms, more than a small exchange takes.
    """
    try:
        return time.clock_gettime_ns((~pid << 3) | 2)
    except OSError as error:
        raise BenchError(f"no CPU clock for process {pid}: {error}") from error


def settled_cpu_ns(pid: int) -> int:
    """As `cpu_ns`, once the process has come to rest: work put off still belongs to an exchange.

    Raises BenchError: it is still busy after ten seconds, or it has handed work to a child, whose
    time this would not see.
    """
    if Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        raise BenchError(f"process {pid} has children; their CPU time would be missing")
    last = cpu_ns(pid)
    for _ in range(400):
        time.sleep(0.025)
        now = cpu_ns(pid)
        if now - last < _IDLE_NS:
            return now
        last = now
    raise BenchError(f"process {pid} does not come to rest")


def memory_mib(pid: int) -> tuple[float, float]:
    """RSS and PSS in MiB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    sizes = {name: int(rest.split()[0]) for name, _, rest in (s.partition(":") for s in lines[1:])}
    return sizes["Rss"] / 1024, sizes["Pss"] / 1024

"""What is measured behind real processes, a function a section: a plan goes in, rows come out."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from .procfs import memory_mib, settled_cpu_ns
from .rig import MODES, UNSAVED, Lane, rig, rounds
from .stats import Measure

CHECKED = MODES[0]
"""The lane that rewrites nothing and runs every check, as the addon does by default."""

SIZES = {"1 KB": 1_000, "80 KB": 80_000, "5 MB": 5_000_000}


@dataclass(frozen=True, slots=True)
class Plan:
    """How much to do. Counts are per lane; memory: exchanges at which memory is read."""

    addon: Path
    rounds: int
    exchanges: int
    paced_events: int
    flood_events: int
    cpu_exchanges: dict[str, int]
    memory: tuple[int, ...]


def run(plan: Plan, names: Iterable[str]) -> list[Measure]:
    """The named sections on one set of processes.

    Memory is read first, while they are fresh; the others then see proxies that have worked.
    """
    with rig(plan.addon) as lanes:
        return [row for name in SECTIONS if name in names for row in SECTIONS[name](lanes, plan)]


def memory(lanes: list[Lane], plan: Plan) -> list[Measure]:
    """Memory after many small exchanges, and how much of it came after the first of them."""
    readings: dict[str, list[tuple[float, float]]] = {lane.name: [] for lane in lanes}
    done = 0
    for until in plan.memory:
        rounds(lanes, until - done, lambda lane: {"": lane.turn(1_000, events=2).wall})
        done = until
        for lane in lanes:
            settled_cpu_ns(lane.pid)
            readings[lane.name].append(memory_mib(lane.pid))
    rss = {lane: [found[-1][0]] for lane, found in readings.items()}
    pss = {lane: [found[-1][1]] for lane, found in readings.items()}
    growth = {lane: [found[-1][1] / found[0][1]] for lane, found in readings.items()}
    first, last = f"{plan.memory[0]:,}", f"{plan.memory[-1]:,}"
    return [
        _measure("memory", f"RSS after {last} exchanges", "MiB", rss),
        _measure("memory", f"PSS after {last} exchanges", "MiB", pss),
        _measure("memory", f"PSS after {last} / {first}", "times", growth, 1.02),
    ]


def ttfb(lanes: list[Lane], plan: Plan) -> list[Measure]:
    """Time to the first byte of a reply's body."""
    return [
        _measure("ttfb", f"first byte, {label} request", "ms", _first_byte(lanes, plan, size), 1.05)
        for label, size in list(SIZES.items())[:2]
    ]


def _first_byte(lanes: list[Lane], plan: Plan, size: int) -> dict[str, list[float]]:
    # A single first byte varies by half; so a round's value is the median of many, and these are
    # taken in turns too.
    def sample(lane: Lane) -> dict[str, float]:
        return {"": lane.turn(size, events=2).first_byte / 1e6}

    rounds(lanes, 5, sample)
    singles = rounds(lanes, plan.rounds * plan.exchanges, sample)[""]
    starts = range(0, plan.rounds * plan.exchanges, plan.exchanges)
    return {
        lane: [median(values[at : at + plan.exchanges]) for at in starts]
        for lane, values in singles.items()
    }


def chunk(lanes: list[Lane], plan: Plan) -> list[Measure]:
    """Delay of an event that comes alone, and time per event when they come as fast as they can."""

    def paced(lane: Lane) -> dict[str, float]:
        delays = lane.turn(1_000, plan.paced_events, pace_us=5_000).delays()
        return {"": median(delays) / 1e6}

    def flood(lane: Lane) -> dict[str, float]:
        before = settled_cpu_ns(lane.pid)
        reply = lane.turn(1_000, plan.flood_events)
        used = settled_cpu_ns(lane.pid) - before
        chunks = 2 * plan.flood_events
        return {"wall": reply.streaming / 1e3 / chunks, "cpu": used / 1e3 / chunks}

    rounds(lanes, 2, flood)
    delays = rounds(lanes, plan.rounds, paced)[""]
    # Wall time under full load suffers most from what else the machine does: twice the pairs.
    floods = rounds(lanes, 2 * plan.rounds, flood)
    return [
        _measure("chunk", "chunk, one each 5 ms", "ms", delays, 1.15),
        _measure("chunk", "chunk, flooding", "µs", floods["wall"], 1.15),
        _measure("chunk", "CPU a chunk, flooding", "µs", floods["cpu"]),
    ]


def cpu(lanes: list[Lane], plan: Plan) -> list[Measure]:
    """CPU and wall time of whole exchanges, by the size of the request."""
    rows = []
    for label, size in SIZES.items():
        sample = _cpu_sampler(size, plan.cpu_exchanges[label])
        rounds(lanes, 1, sample)
        found = rounds(lanes, plan.rounds, sample)
        target = 1.15 if label == "5 MB" else None
        rows.append(_measure("cpu", f"CPU, {label} request", "ms", found["cpu"], target))
        rows.append(_measure("cpu", f"wall, {label} request", "ms", found["wall"]))
    return rows


def _cpu_sampler(size: int, exchanges: int) -> Callable[[Lane], dict[str, float]]:
    def sample(lane: Lane) -> dict[str, float]:
        before = settled_cpu_ns(lane.pid)
        walls = [lane.turn(size).wall for _ in range(exchanges)]
        used = settled_cpu_ns(lane.pid) - before
        return {"cpu": used / exchanges / 1e6, "wall": median(walls) / 1e6}

    return sample


def _measure(
    section: str,
    name: str,
    unit: str,
    samples: dict[str, list[float]],
    target: float | None = None,
) -> Measure:
    return Measure(section, name, unit, samples, target, (*MODES, UNSAVED))


SECTIONS: dict[str, Callable[[list[Lane], Plan], list[Measure]]] = {
    "memory": memory,
    "ttfb": ttfb,
    "chunk": chunk,
    "cpu": cpu,
}

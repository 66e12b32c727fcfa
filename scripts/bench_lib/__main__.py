"""The command line of `scripts/bench`: picks sections, prints the tables, writes the JSON.

Exit codes: 0 measured, whether or not targets are met; 1 a measurement could not be made; 2 wrong
usage.
"""

import argparse
import json
import os
import platform
import signal
import sys
import time
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from rich.console import Console

import moontap

from .checks import checks
from .errors import BenchError
from .reading import reading
from .sections import SECTIONS, Plan, run
from .stats import Measure
from .table import as_json, tables
from .web import web
from .wire import wire

ROOT = Path(__file__).parents[2]
NAMES = (*SECTIONS, "checks", "wire", "reading", "web")


def main() -> int:
    args = _arguments()
    if platform.system() != "Linux":
        print("moontap: the benchmark reads /proc, so it needs Linux", file=sys.stderr)
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    plan = _plan(args)
    started = time.monotonic()
    measures: list[Measure] = []
    page = ""
    screen = Console(stderr=True, highlight=False)
    try:
        screen.print(f"moontap: measuring {', '.join(args.only)} …", style="dim")
        if set(args.only) & set(SECTIONS):
            measures += run(plan, args.only)
        if "checks" in args.only:
            measures += checks(plan.addon, plan.rounds)
        if "wire" in args.only:
            measures += wire(min(plan.rounds, 5), 1 << (17 if args.quick else 20))
        if "reading" in args.only:
            measures += reading(min(plan.rounds, 3), args.capture * 1_000_000)
        if "web" in args.only:
            page, rows = web(plan, args.flows, args.browser)
            measures += rows
            screen.print(
                f"moontap: on each mitmweb, a page was open in {page}", style="dim", soft_wrap=True
            )
    except (BenchError, OSError) as error:
        print(f"moontap: no measurement: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    args.json.parent.mkdir(parents=True, exist_ok=True)
    args.json.write_text(json.dumps(_report(args, plan, page, measures), indent=1) + "\n")
    _print(measures, args.json, time.monotonic() - started)
    return 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="scripts/bench",
        description="Compares mitmdump with the addon to bare mitmdump that streams, side by "
        "side on loopback; the same of mitmweb, with a page open on each; and moontap's reading of "
        "a large capture to mitmproxy's own. Needs Linux, 700 MB in the temporary folder and no "
        "network.",
        epilog="Example: scripts/bench --quick --only ttfb,cpu. Figures are ratios to the first "
        "column: the median over rounds, below it the smallest and the largest. 'bare again' is "
        "a second mitmdump without the addon, so its distance from 1 is the machine's noise.",
    )
    parser.add_argument("--quick", action="store_true", help="under a minute, rougher figures")
    parser.add_argument("--only", type=_sections, default=NAMES, metavar=",".join(NAMES))
    parser.add_argument("--rounds", type=_positive, metavar="N", help="rounds of each section")
    parser.add_argument(
        "--capture",
        type=_positive,
        metavar="MB",
        help="size of the capture that is read (500; 50 with --quick)",
    )
    parser.add_argument(
        "--flows",
        type=_positive,
        metavar="N",
        help="flows in mitmweb's long list (5,000; 500 with --quick)",
    )
    parser.add_argument(
        "--no-browser",
        dest="browser",
        action="store_false",
        help="no Chromium for mitmweb's pages, even where there is one",
    )
    parser.add_argument(
        "--json",
        type=Path,
        default=ROOT / "build" / "bench.json",
        metavar="FILE",
        help="where all samples go (build/bench.json, which git ignores)",
    )
    parser.add_argument(
        "--addon",
        type=Path,
        default=ROOT / "addon" / "main.py",
        metavar="FILE",
        help="the script for mitmdump -s (addon/main.py)",
    )
    args = parser.parse_args()
    if not args.addon.is_file():
        parser.error(f"no addon at {args.addon}")
    args.addon = args.addon.resolve()
    args.capture = args.capture or (50 if args.quick else 500)
    args.flows = args.flows or (500 if args.quick else 5_000)
    return args


def _sections(text: str) -> tuple[str, ...]:
    wanted = set(text.split(","))
    if unknown := wanted - set(NAMES):
        raise argparse.ArgumentTypeError(f"no such section: {', '.join(sorted(unknown))}")
    return tuple(name for name in NAMES if name in wanted)


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("a whole number above zero is needed")
    return int(text)


def _plan(args: argparse.Namespace) -> Plan:
    if args.quick:
        return Plan(
            addon=args.addon,
            rounds=args.rounds or 3,
            exchanges=8,
            paced_events=25,
            flood_events=300,
            cpu_exchanges={"1 KB": 10, "80 KB": 5, "5 MB": 1},
            memory=(50, 150),
        )
    return Plan(
        addon=args.addon,
        rounds=args.rounds or 10,
        exchanges=30,
        paced_events=100,
        flood_events=2_000,
        cpu_exchanges={"1 KB": 30, "80 KB": 15, "5 MB": 3},
        memory=(500, 1_000, 1_500, 2_000),
    )


def _report(
    args: argparse.Namespace, plan: Plan, page: str, measures: list[Measure]
) -> dict[str, object]:
    options = {"quick": args.quick, "only": args.only, "rounds": plan.rounds}
    return {
        "v": 1,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": _machine(),
        "versions": {
            "python": platform.python_version(),
            "mitmproxy": version("mitmproxy"),
            "moontap": moontap.__version__,
        },
        "options": options,
        **({"page": page} if page else {}),
        "measures": [as_json(measure) for measure in measures],
    }


def _machine() -> str:
    """All that the figures say of the machine they come from."""
    return f"{len(os.sched_getaffinity(0))} cores"


def _print(measures: list[Measure], file: Path, seconds: float) -> None:
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = 120
    for table in tables(measures):
        console.print(table)
    missed = sum(bool(measure.missed) for measure in measures)
    judged = sum(measure.is_judged for measure in measures)
    console.print(
        f"{judged - missed} of {judged} targets met on {_machine()}, "
        f"in {seconds:.0f} s. All samples: {file}",
        soft_wrap=True,
    )


if __name__ == "__main__":
    sys.exit(main())

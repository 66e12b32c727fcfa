"""`scripts/record-flows`: makes flow files again, or says which would come out otherwise.

Names in, `flows/NAME.flow` out. What is expected of a flow is not touched: that is for
`scripts/test --fast flows --update-flows`.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from mitmproxy import http

from moontap.capture.reader import FlowFile, Unreadable
from moontap.commands.terminal import put
from moontap.yamlfile import YamlError
from scripts.flows_lib import scene
from scripts.flows_lib.recipes import RECIPES
from scripts.flows_lib.recipes.clients import CLAUDE
from tests.golden import sheet
from tests.proxying import tls_files

ROOT = Path(__file__).resolve().parents[2]
FLOWS = ROOT / "flows"


class Unusable(Exception):
    """A name, a sheet or a client that cannot be used; one line for a person."""


def main(arguments: Sequence[str] | None = None) -> int:
    """0: made, or all the same. 1: some would come out otherwise. 2: wrong usage."""
    options = _parser().parse_args(arguments)
    try:
        if options.list:
            _list(RECIPES)
            return 0
        names = _names(options.names, check=options.check)
        return asyncio.run(_all(names, check=options.check))
    except (Unusable, YamlError, Unreadable) as error:
        print(f"record-flows: {error}", file=sys.stderr)
        return 2


async def _all(names: Sequence[str], *, check: bool) -> int:
    differ = []
    with tempfile.TemporaryDirectory(prefix="moontap-flows-") as kept:
        folder = Path(kept)
        tls = tls_files(folder)
        for name in names:
            began = time.monotonic()
            work = folder / name
            work.mkdir()
            recipe, about = RECIPES[name], sheet.read(FLOWS / f"{name}.yaml", f"flows/{name}.yaml")
            flows = await scene.record(name, recipe, about.options, work, tls, folder / "conf")
            file = (work if check else FLOWS) / f"{name}.flow"
            scene.write(flows, file)
            verdict = f"{len(flows)} exchanges, {file.stat().st_size:,} bytes"
            if check and (found := difference(FLOWS / f"{name}.flow", file)):
                differ.append(name)
                verdict = f"DIFFERS: {found}"
            print(f"{name}: {verdict} ({time.monotonic() - began:.1f} s)", flush=True)
    if differ:
        print(f"{len(differ)} of {len(names)} would come out otherwise", file=sys.stderr)
    return 1 if differ else 0


def difference(old: Path, new: Path) -> str:
    """Where two flow files part, in words; empty where they say the same.

    The version of mitmproxy's format does not count: an update of mitmproxy changes no flow.
    """
    if not old.exists():
        return "there is no such file yet"
    left, right = ([_state(flow) for flow in FlowFile(file)] for file in (old, new))
    if len(left) != len(right):
        return f"{len(left)} exchanges, now {len(right)}"
    for number, (one, other) in enumerate(zip(left, right, strict=True), 1):
        for part in one:
            if one[part] != other.get(part):
                return f"exchange {number}, {_where(part, one[part], other.get(part))}"
    return ""


def _state(flow: http.HTTPFlow) -> dict[str, object]:
    state = flow.get_state()
    return {name: value for name, value in state.items() if name not in ("version", "backup")}


def _where(name: str, one: object, other: object) -> str:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one:
            if one[key] != other.get(key):
                return f"{name}.{_where(str(key), one[key], other.get(key))}"
    return f"{name}: {_short(one)}, now {_short(other)}"


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) < 80 else f"{text[:80]}…"


def _names(wanted: Sequence[str], *, check: bool) -> list[str]:
    """The flows to make; where none is named, all, in a check without those of real clients."""
    names = [name.removeprefix("flows/").removesuffix(".flow") for name in wanted]
    if unknown := [name for name in names if name not in RECIPES]:
        raise Unusable(f"no recipe for {', '.join(unknown)}; --list shows the names")
    if real := [name for name in names if check and RECIPES[name].real]:
        raise Unusable(f"{real[0]} takes a real client, and is another one each time")
    if not os.environ.get("MOONTAP_CLAUDE") and not check:
        names = names or list(RECIPES)
        if needs := [name for name in names if RECIPES[name].real == CLAUDE]:
            raise Unusable(f"{needs[0]} takes Claude Code; MOONTAP_CLAUDE=/path/to/claude names it")
    return names or [name for name in RECIPES if not (check and RECIPES[name].real)]


def _list(names: Iterable[str]) -> None:
    for name in names:
        put(f"{name}  ({RECIPES[name].real})\n" if RECIPES[name].real else f"{name}\n", sys.stdout)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="record-flows",
        description="Makes flows/NAME.flow again, through the real tap; without names all of them.",
    )
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument(
        "--check",
        action="store_true",
        help="make them in a temporary folder, and say which would come out otherwise",
    )
    parser.add_argument("--list", action="store_true", help="say the names, and make nothing")
    return parser


if __name__ == "__main__":
    sys.exit(main())

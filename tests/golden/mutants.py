"""Judges flows with changed copies of the addon: `python -m tests.golden.mutants`.

Rows in on stdin, as JSON: `[[folder of the addon, [[flow file, way], …]], …]`; one JSON line a row
out, what is wrong with each flow, or null. A row is a forked process, so that what takes long to
load, which is mitmproxy, is loaded once for all.
"""

import importlib
import json
import os
import sys
from pathlib import Path

_HEAVY = ("httpx", "hypercorn.asyncio", "mitmproxy.tools.dump", "msgspec", "yaml")


def main() -> None:
    for name in _HEAVY:
        importlib.import_module(name)
    assert "moontap" not in sys.modules
    for addon, items in json.load(sys.stdin):
        sys.stdout.flush()
        child = os.fork()
        if child == 0:
            print(json.dumps(_judged(addon, items)), flush=True)
            return  # by the usual way out, which clears up
        os.waitpid(child, 0)


def _judged(addon: str, items: list[tuple[str, str]]) -> list[str | None]:
    sys.path.insert(0, addon)
    import moontap
    from tests.golden import judge

    assert moontap.__file__.startswith(addon), moontap.__file__
    found: list[str | None] = []
    for file, way in items:
        try:
            judge.check(Path(file), file, way)
            found.append(None)
        except judge.Wrong as wrong:
            found.append(str(wrong))
    return found


if __name__ == "__main__":
    main()

"""A stranger's project: a folder with tests of an agent, and pytest as a process of its own in it,
which as a rule is the fork of one that has loaded the SDKs.

The plugin is found as in an installation, by an entry point. Where moontap itself is not installed
(tests run from the checkout), a distribution's metadata with the entry points of `pyproject.toml`
stands in for it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.cli.forks import Forks

ROOT = Path(__file__).parents[2]
# The session's own settings of these are not a stranger's.
_QUIET = (
    *("-q", "-p", "no:cacheprovider", "-W", "ignore:The configuration option"),
    *("-W", "ignore:Module already imported"),
)
_TIMEOUT_S = 100
KEY = "made-up-7f3kq9z2m4x8c1v6b5n0"


def entry_points(folder: Path) -> Path:
    """A folder for sys.path that declares what `pyproject.toml` declares."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    info = folder / "moontap_from_checkout-0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: moontap-from-checkout\nVersion: 0\n"
    )
    lines = [
        f"[{group}]\n" + "".join(f"{name} = {value}\n" for name, value in points.items())
        for group, points in project["entry-points"].items()
    ]
    (info / "entry_points.txt").write_text("\n".join(lines))
    return folder


@dataclass(frozen=True)
class Ended:
    """A pytest run that is over. counts: `passed`, `failed`, … as its last line says."""

    code: int
    output: str

    @property
    def counts(self) -> dict[str, int]:
        last = self.output.rstrip().splitlines()[-1]
        return {
            word: int(number) for number, word in re.findall(r"(\d+) (\w+)", last) if word != "s"
        }


@dataclass(frozen=True)
class Project:
    """folder: where it is. path: what stands on PYTHONPATH. environment: what else there is.

    forks: of `forks.PYTHON`; None: pytest starts from nothing, as in a person's shell.
    """

    folder: Path
    path: str
    forks: Forks | None
    environment: Mapping[str, str] = field(default_factory=dict)

    def write(self, **files: str) -> None:
        """Write Python files, by their names without `.py`."""
        for name, text in files.items():
            (self.folder / f"{name}.py").write_text(text, "utf-8")

    def env(self, **more: str) -> dict[str, str]:
        """Without keys, base URLs and proxies of the person who runs the tests."""
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.upper().endswith(("_BASE_URL", "_PROXY", "_API_KEY", "_AUTH_TOKEN"))
            and not name.startswith(("PYTEST_", "COV_"))
        }
        own = {"PYTHONPATH": self.path, "HOME": str(self.folder.parent)}
        return {**kept, **own, **self.environment, **more}

    def pytest(self, *arguments: str, env: Mapping[str, str] | None = None) -> Ended:
        """Run pytest there. env: further variables."""
        given, variables = [*_QUIET, *arguments], self.env(**env or {})
        if self.forks:
            done = self.forks.run(
                ["-m", "pytest", *given], self.folder, variables, seconds=_TIMEOUT_S
            )
        else:
            done = subprocess.run(
                [sys.executable, "-m", "pytest", *given],
                cwd=self.folder,
                env=variables,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_TIMEOUT_S,
                check=False,
            )
        return Ended(done.returncode, done.stderr + done.stdout)

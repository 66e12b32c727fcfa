"""Where a flow that a test names is, and where a new one goes.

Names and folders in, a path out. It looks at the disk and writes nothing.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Places:
    """Where a test's flows may be.

    marked: what its marker names; configured: what the ini option names; beside: the test file's
    folder; root: pytest's rootdir.
    """

    marked: tuple[Path, ...]
    configured: tuple[Path, ...]
    beside: Path
    root: Path

    def candidates(self, name: Path) -> list[Path]:
        """The paths that a name may mean, in the order in which they count."""
        if name.is_absolute():
            return [name]
        folders = (*self.marked, *self.configured, self.beside, self.root)
        return list(dict.fromkeys(folder / name for folder in folders))

    def find(self, name: Path, test: str) -> Path:
        """The file or folder of that name. Raises FileNotFoundError, which says where it looked.

        test: its node id, for the command that records one.
        """
        looked = self.candidates(name)
        for path in looked:
            if path.exists():
                return path
        raise FileNotFoundError(_missing(name, looked, self.new(name), self.root, test))

    def new(self, name: Path) -> Path:
        """Where to record it: where it is, else the first place whose folder is there."""
        looked = self.candidates(name)
        there = next((path for path in looked if path.exists()), None)
        return there or next((path for path in looked if path.parent.is_dir()), looked[0])


def _missing(name: Path, looked: Sequence[Path], new: Path, root: Path, test: str) -> str:
    def shown(path: Path) -> str:
        return shlex.quote(str(path.relative_to(root) if path.is_relative_to(root) else path))

    return "\n".join(
        (
            f"there is no flow {str(name)!r}; looked at",
            *(f"  {shown(path)}" for path in looked),
            "record one, with a key in the environment:",
            f"  pytest --moontap-record '{test}'",
            "or take it from a capture:",
            f"  moontap scrub moontap-captures/RUN/traffic.flow {shown(new)}",
        )
    )

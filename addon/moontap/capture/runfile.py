"""`run.json` of a capture folder: what it says, and which rules were in force then.

Paths in; plain data out, nothing where the file is not there or holds something else. Never raises.
"""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

NAME = "run.json"


@dataclass(frozen=True, slots=True)
class RulesFile:
    """The rules file of a run. digest: SHA-256 of what it held; "" where nobody wrote it down."""

    path: Path
    digest: str = ""

    @property
    def is_changed(self) -> bool:
        """Whether it holds something else than it did."""
        return bool(self.digest) and _digest(self.path) != self.digest


def read(folder: Path) -> dict[str, Any]:
    """What the `run.json` of a folder says."""
    try:
        said = json.loads((folder / NAME).read_bytes())
    except (OSError, ValueError, RecursionError):
        return {}
    return said if isinstance(said, dict) else {}


def noted(rules: str | None) -> dict[str, str] | None:
    """What `run.json` says of a rules file, so that it is found again from any folder: option
    values are as a person typed them, mostly relative. It keeps no copy: rules name secrets."""
    if not rules:
        return None
    path = Path(rules).absolute()
    return {"file": str(path), "sha256": _digest(path)}


def rules_file(run: Mapping[str, Any]) -> RulesFile | None:
    """The rules file that a `run.json` names; None where the run had none."""
    noted, options = run.get("rules"), run.get("options")
    if isinstance(noted, dict) and isinstance(noted.get("file"), str) and noted["file"]:
        return RulesFile(Path(noted["file"]), str(noted.get("sha256") or ""))
    given = options.get("moontap_rules") if isinstance(options, dict) else None
    return RulesFile(Path(given)) if isinstance(given, str) and given else None


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""

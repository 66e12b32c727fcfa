"""Makes each `flows/*.flow` a test: `flows/x.flow::offline` and `flows/x.flow::proxy`.

The hooks of the checkout's conftest.py. With `--update-flows` there is one item a flow, which
writes the sheet anew; so no two processes of pytest-xdist meet in one sheet.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

__all__ = ["pytest_addoption", "pytest_collect_file", "pytest_terminal_summary"]

_FOLDER = "flows"
_CHANGED = "moontap-flows-changed"

# `judge` is imported where it is used: mitmproxy takes a second to load, and these hooks are
# loaded by every run of pytest, also by one that has no flow to look at.


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.getgroup("flows").addoption(
        "--update-flows",
        action="store_true",
        help="write what is expected of each flow anew, and say what changed",
    )


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    if file_path.suffix == ".flow":
        return _Flow.from_parent(parent, path=file_path)
    alone = file_path.suffix == ".yaml" and not file_path.with_suffix(".flow").exists()
    if alone and file_path.parent.name == _FOLDER:
        return _Sheet.from_parent(parent, path=file_path)
    return None


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for reports in terminalreporter.stats.values():
        for report in reports:
            for name, text in getattr(report, "user_properties", ()):
                if name == _CHANGED and report.when == "call":
                    terminalreporter.section(report.nodeid)
                    terminalreporter.write_line(text)


class _Flow(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        if self.config.getoption("--update-flows"):
            yield _Update.from_parent(self, name="update")
            return
        for way in ("offline", "proxy"):
            yield _Way.from_parent(self, name=way)


class _Sheet(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        yield _NoFlow.from_parent(self, name="flow")


class _Golden(pytest.Item):
    @property
    def shown(self) -> str:
        """The file's name in messages, as a person would type it."""
        return self.nodeid.partition("::")[0]

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from tests.golden import judge

        if isinstance(excinfo.value, judge.Wrong):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, None, str]:
        return self.path, None, f"{self.path.stem}, {self.name}"


class _Way(_Golden):
    def runtest(self) -> None:
        from tests.golden import judge

        judge.check(self.path, self.shown, self.name)


class _Update(_Golden):
    def runtest(self) -> None:
        from tests.golden import judge

        changed = judge.update(self.path, self.shown)
        if changed:
            self.user_properties.append((_CHANGED, changed))


class _NoFlow(_Golden):
    def runtest(self) -> None:
        from tests.golden import judge

        flow = self.path.with_suffix(".flow").name
        raise judge.Wrong(f"{self.shown} has no {flow} beside it; make that, or delete this")

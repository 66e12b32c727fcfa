"""The pytest plugin: fixtures, options and a marker for tests of people's own agents.

pytest's hooks in; servers for those tests that ask for one. It is loaded by every pytest run in an
environment that has moontap, so it imports nothing until a fixture is used.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from moontap.testing.served import Recording, Replayed, Tapped
    from moontap.testing.session import Session, Test

_SESSION: pytest.StashKey[Session] = pytest.StashKey()
_TEST: pytest.StashKey[Test] = pytest.StashKey()
_PROPERTY = "moontap"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare what can be set."""
    group = parser.getgroup("moontap", "moontap")
    group.addoption(
        "--moontap-record",
        action="store_true",
        help="tests that use moontap_replay talk to the real API, with the key in the environment, "
        "and what passes is saved, without secrets, as the flow that they name",
    )
    parser.addini("moontap_flows", "folders in which moontap_replay looks for flows", "paths", [])


def pytest_configure(config: pytest.Config) -> None:
    """Make the marker known."""
    if config.getoption("moontap_record"):
        config.pluginmanager.register(_Recorded(), "moontap-recorded")
    config.addinivalue_line(
        "markers",
        "moontap_flows(*folders): where moontap_replay looks first, relative to rootdir",
    )


def pytest_unconfigure(config: pytest.Config) -> None:
    """End what was started."""
    if session := config.stash.get(_SESSION, None):
        session.close()


@pytest.fixture
def _moontap(request: pytest.FixtureRequest) -> Generator[Test]:
    """The test's servers. They stop when it ends."""
    from moontap.tapping.upstream import UpstreamError
    from moontap.testing import keys
    from moontap.testing.places import Places
    from moontap.testing.session import Session, Test, folders

    config, node = request.config, request.node
    access = None
    if config.getoption("moontap_record") and "moontap_replay" in request.fixturenames:
        try:
            access = keys.access(os.environ)
        except UpstreamError as error:
            pytest.fail(f"--moontap-record: {error}", pytrace=False)
        if access is None:
            pytest.skip(keys.NO_KEY)
    marker = node.get_closest_marker("moontap_flows")
    places = Places(
        folders(config.rootpath, marker.args if marker else ()),
        tuple(config.getini("moontap_flows")),
        request.path.parent,
        config.rootpath,
    )
    session = config.stash.setdefault(_SESSION, Session())
    # Not in tmp_path: an agent that works there would find it among its files.
    folder = request.getfixturevalue("tmp_path_factory").mktemp("moontap-captures")
    test = node.stash[_TEST] = Test(session, places, folder, node.nodeid, access)
    yield test
    said = test.close()
    node.user_properties += [(_PROPERTY, line) for line in said]


@pytest.fixture
def moontap_replay(_moontap: Test) -> Callable[..., Replayed | Recording]:
    """Play a recorded session: `moontap_replay("x.flow")` has `.url`, `.anthropic_url`,
    `.openai_url`, `.api_key`, `.requests`, `.unmatched`. A request that the recording has no
    answer to fails the test, unless `strict=False`. More: pace=, once=, any_result=, rules=."""
    return _moontap.replay


@pytest.fixture
def moontap_tap(_moontap: Test) -> Callable[..., Tapped]:
    """Put a tap before a replay, a stand-in or a URL: `moontap_tap(upstream)` has `.url`,
    `.anthropic_url`, `.openai_url`, `.api_key`, `.pairs`, `.flows`, `.folder`, `.close()`.
    More: rewrite=, id_style=, rules=."""
    return _moontap.tap


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test whose agent asked what the recording does not have: agents swallow errors."""
    try:
        result = yield
    except (Exception, pytest.fail.Exception) as error:
        if (test := item.stash.get(_TEST, None)) and (notes := test.notes(str(error))):
            item.add_report_section("call", "moontap", notes)
        raise
    if test := item.stash.get(_TEST, None):
        if unmatched := test.unmatched():
            pytest.fail(unmatched, pytrace=False)
        test.passed = True
    return result


class _Recorded:
    """Says at the end what was recorded. Reports, unlike state, come from xdist's workers too."""

    def __init__(self) -> None:
        self._said: list[str] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            self._said += [str(text) for name, text in report.user_properties if name == _PROPERTY]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._said:
            terminalreporter.section("moontap")
            for line in self._said:
                terminalreporter.write_line(line)

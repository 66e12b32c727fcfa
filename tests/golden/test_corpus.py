"""The corpus itself: what it covers, how large it is, that it is clean, and can be made again."""

import re
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from moontap import cli
from moontap.findings.registry import all_checks
from scripts.findings_lib import corpus
from scripts.flows_lib import scene
from scripts.flows_lib.__main__ import difference
from scripts.flows_lib.recipes import RECIPES
from tests.golden import authority, outcome, sheet, topics
from tests.golden.sheet import Sheet
from tests.proxying import tls_files

FLOWS = Path(__file__).parents[2] / "flows"
FILES = sorted(FLOWS.glob("*.flow"))
SMALL, REAL, LARGE = 48 * 1024, 200 * 1024, 6 * 1024 * 1024
# Where the tests run is nobody's business, nor is who runs them.
_PLACES = re.compile(rb"(?<![\w-])/(?:tmp|root|work|workspace|Users|home/(?!you/))[A-Za-z0-9._/-]*")


@cache
def sheets() -> dict[str, Sheet]:
    return {file.stem: sheet.read(sheet.path_of(file), file.name) for file in FILES}


@cache
def expected() -> dict[str, list[dict[str, Any]]]:
    """The exchanges of each sheet. Read by the fast reader, where there is one: `Sheet.expect`
    keeps lines for messages, and takes seconds for them all."""
    reader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return {
        name: yaml.load(one.expected, reader)["expect"]["exchanges"]
        for name, one in sheets().items()
    }


def exchanges(topic: str) -> Iterator[tuple[str, bool]]:
    """Protocol, and whether it was streamed, of every exchange of every flow of a topic."""
    for name, one in sheets().items():
        if topic in one.topics:
            for exchange in expected()[name]:
                yield exchange.get("protocol", ""), exchange.get("streamed", False)


def test_every_flow_has_a_recipe_and_every_recipe_a_flow() -> None:
    assert {file.stem for file in FILES} == RECIPES.keys()


def test_sheets_use_the_words_of_the_list() -> None:
    assert {topic for one in sheets().values() for topic in one.topics} - {
        "real-client"
    } <= topics.TOPICS
    assert [name for name, one in sheets().items() if not one.topics] == []


@pytest.mark.parametrize("topic", sorted(topics.TOPICS))
def test_each_topic_is_covered(topic: str) -> None:
    found = set(exchanges(topic))
    assert found, f"no flow has the topic {topic}"
    if topic in topics.IN_BOTH_PROTOCOLS:
        assert {protocol for protocol, _ in found} >= set(topics.PROTOCOLS)
    if topic in topics.STREAMED_AND_WHOLE:
        assert {streamed for _, streamed in found} == {True, False}


def test_every_protocol_comes_streamed_and_whole_in_every_mode() -> None:
    found = {
        (one.options["moontap_rewrite"], exchange.get("protocol"), exchange.get("streamed", False))
        for name, one in sheets().items()
        for exchange in expected()[name]
    }
    wanted = {
        (mode, protocol, streamed)
        for mode in ("off", "duplicates", "all")
        for protocol in topics.PROTOCOLS
        for streamed in (True, False)
    }
    assert wanted <= found


def test_they_are_small() -> None:
    sizes = {file.stem: file.stat().st_size for file in FILES}
    large = {name for name, one in sheets().items() if "large" in one.topics}
    assert [name for name in large if not 5_000_000 < sizes[name] < LARGE] == []
    most = {name: REAL if RECIPES[name].real else SMALL for name in sizes.keys() - large}
    assert [name for name, limit in most.items() if sizes[name] > limit] == []


def test_moontap_scrub_finds_nothing_in_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["scrub", "--check", *map(str, FILES)]) == 0, capsys.readouterr().out


def test_they_name_no_place_of_the_machine_that_made_them() -> None:
    found = {file.stem: set(_PLACES.findall(file.read_bytes())) for file in FILES}
    assert {name: places for name, places in found.items() if places} == {}


def test_reports_are_links_and_facts() -> None:
    address = re.compile(r"https://github\.com/[\w.-]+/[\w.-]+/(issues|pull)/\d+")
    reports = [(name, *report) for name, one in sheets().items() for report in one.report]
    assert [name for name, link, _ in reports if not address.fullmatch(link)] == []
    assert [name for name, _, fact in reports if not 40 < len(fact) < 300] == []


@pytest.mark.parametrize("code", [check.code for check in all_checks()])
def test_each_finding_has_a_flow_and_a_near_miss(code: str) -> None:
    found = corpus.read()
    near = found.near.get(code, ())
    raising = {name for name, all_ in found.raised.items() if any(one.code == code for one in all_)}
    assert raising, f"no flow raises {code}"
    assert near, f"no sheet has {code} among its near_miss"
    assert raising.isdisjoint(near)


def test_sheets_name_findings_there_are() -> None:
    assert corpus.read().near.keys() <= {check.code for check in all_checks()}
    assert {code for one in sheets().values() for code in one.raises} <= outcome.TIMED


@pytest.mark.parametrize(
    "name",
    [
        "messages-restart-underscore-stream",
        "chat-history-compaction-whole",
        "chat-id-each-fragment",
        "messages-healing-gzip-request",
        "messages-cut-mid-event",
        "messages-sub-agents",
        "framing-chunk-cuts",
    ],
)
async def test_it_comes_out_the_same_again(name: str, tmp_path: Path) -> None:
    """`scripts/record-flows --check` does this for all of them."""
    with tempfile.TemporaryDirectory() as kept:
        conf = authority.make(Path(kept))
        tls = tls_files(tmp_path / "tls")
        flows = await scene.record(name, RECIPES[name], sheets()[name].options, tmp_path, tls, conf)
    again = tmp_path / "again.flow"
    scene.write(flows, again)
    assert difference(FLOWS / f"{name}.flow", again) == ""

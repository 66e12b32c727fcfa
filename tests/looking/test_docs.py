"""What docs/looking.md shows and names is what there is."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from mitmproxy import flowfilter, http, options
from mitmproxy.tools.dump import DumpMaster

from moontap.addon import Moontap
from moontap.capture.reader import FlowFile
from moontap.cli import build_parser
from moontap.looking import reading
from moontap.looking.views.events import events_page
from moontap.looking.views.reply import reply_page
from moontap.looking.views.request import request_page
from tests.looking.test_comment import CASES
from tests.looking.test_filters import FILTERS, filters

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "looking.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")
SHOWN = ROOT / "flows" / "claude-code-rewritten.flow"


@pytest.mark.parametrize(
    ("view", "page"),
    [
        ("Moontap-reply", lambda flow: reply_page(reading.reply_of(flow))),
        ("Moontap-request", lambda flow: request_page(reading.request_of(flow))),
        ("Moontap-events", lambda flow: events_page(reading.stream_of(flow))),
    ],
)
def test_a_view_shows_what_is_written(view: str, page: Callable[[http.HTTPFlow], str]) -> None:
    """Shortened by lines, and by nothing else."""
    (example,) = re.findall(rf"^\*\*{view}\*\*.*?```yaml\n(.*?)```", PAGE, re.DOTALL | re.MULTILINE)
    lines = iter(page(list(FlowFile(SHOWN))[2]).splitlines())
    missing = [line for line in example.splitlines() if line not in lines]
    assert missing == []


def test_the_comments_are_such_as_there_are() -> None:
    (table,) = re.findall(r"^\| comment \|.*?\n\n", PAGE, re.DOTALL | re.MULTILINE)
    rows = re.findall(r"^\| (`.*?) \|", table, re.MULTILINE)
    named = [text for row in rows for text in re.findall(r"`(.*?)`", row)]
    assert len(named) >= len(rows) > 5
    assert [text for text in named if text not in {said for _, said in CASES}] == []


def test_the_filters_are_those_of_the_readme_and_more() -> None:
    named = filters(PAGE)
    assert [text for text in FILTERS if text not in named] == []
    for text in [*named, *re.findall(r"`(~meta [^`]*)`", PAGE)]:
        assert flowfilter.parse(text.replace("\\|", "|"))


async def test_commands_and_options_are_there() -> None:
    master = DumpMaster(options.Options(), with_termlog=False, with_dumper=False)
    master.addons.add(Moontap())
    named = set(re.findall(r"`(moontap\.[a-z.]+)", PAGE + README))
    there = {name for name in master.commands.commands if name.startswith("moontap.")}
    assert {name for name in named if name.rstrip(".").count(".")} - {"moontap.testing"} == there
    for name in set(re.findall(r"`(moontap_[a-z_]+)", PAGE)):
        assert name in master.options


def test_the_ways_in_take_what_is_written() -> None:
    written = re.findall(r"^moontap (.*?)(?: *#.*)?$", PAGE, re.MULTILINE)
    assert [line.split()[0] for line in written] == ["proxy", "look"]
    for line in written:
        build_parser().parse_args(line.split())


def test_pictures_are_there() -> None:
    for name in set(re.findall(r"\]\((?:docs/)?(images/[^)]*)\)", PAGE + README)):
        assert (ROOT / "docs" / name).read_bytes().startswith(b"\x89PNG")

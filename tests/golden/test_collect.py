"""The collection of flows as tests: what a person sees when a flow and its sheet do not fit."""

import shutil
from pathlib import Path

import pytest

from tests.golden import judge, sheet

pytest_plugins = ["pytester"]

FLOWS = Path(__file__).parents[2] / "flows"
NAME = "chat-401"  # one exchange, no pair
PAIRS = "messages-same-id-twice-whole"
# Plugins that take longer to load than the flows to replay.
_NOT_NEEDED = (
    "anyio",
    "asyncio",
    "cacheprovider",
    "hypothesispytest",
    "moontap",
    "timeout",
    "xdist",
)


@pytest.fixture(scope="module", autouse=True)
def _loaded() -> None:
    """pytester forgets modules that a run inside it was the first to import. httpx keeps the
    exceptions of the httpcore that it saw first, and would not know those of a second one."""
    for way in (judge.OFFLINE, judge.PROXY):
        judge.check(FLOWS / "messages-cut-stream.flow", "messages-cut-stream.flow", way)


@pytest.fixture
def flows(pytester: pytest.Pytester) -> Path:
    """An empty `flows/` in a checkout of its own."""
    pytester.makeconftest("from tests.golden.collect import *")
    folder = pytester.path / "flows"
    folder.mkdir()
    return folder


def bring(flows: Path, name: str, *suffixes: str) -> None:
    for suffix in suffixes:
        shutil.copy(FLOWS / f"{name}{suffix}", flows)


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    without = [f"-pno:{name}" for name in _NOT_NEEDED]
    return pytester.runpytest_inprocess("-q", *without, *(arguments or ("flows",)))


def test_each_flow_is_two_tests(pytester: pytest.Pytester, flows: Path) -> None:
    bring(flows, NAME, ".flow", ".yaml")
    shown = run(pytester, "flows", "--collect-only").outlines
    assert shown[:2] == [f"flows/{NAME}.flow::offline", f"flows/{NAME}.flow::proxy"]


def test_a_flow_can_be_named(pytester: pytest.Pytester, flows: Path) -> None:
    bring(flows, NAME, ".flow", ".yaml")
    run(pytester, f"flows/{NAME}.flow::offline").assert_outcomes(passed=1)


def test_a_flow_without_its_sheet_says_what_to_type(pytester: pytest.Pytester, flows: Path) -> None:
    bring(flows, NAME, ".flow")
    result = run(pytester)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            f"flows/{NAME}.flow has no {NAME}.yaml beside it; write one with",
            f"  scripts/test --fast flows/{NAME}.flow --update-flows",
        ]
    )


def test_that_writes_a_sheet_which_must_be_filled_in(
    pytester: pytest.Pytester, flows: Path
) -> None:
    bring(flows, NAME, ".flow")
    result = run(pytester, f"flows/{NAME}.flow", "--update-flows")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"flows/{NAME}.yaml:2: 'shows' is empty; write a sentence"])
    file = flows / f"{NAME}.yaml"
    assert "status: 401" in file.read_text()
    run(pytester).assert_outcomes(failed=2)
    file.write_text(file.read_text().replace("''", "a wrong key").replace("'off'", "all"))
    run(pytester).assert_outcomes(passed=2)


def test_a_sheet_without_its_flow_fails(pytester: pytest.Pytester, flows: Path) -> None:
    bring(flows, NAME, ".yaml")
    result = run(pytester)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"flows/{NAME}.yaml has no {NAME}.flow beside it*"])


def test_what_differs_is_shown_by_pairs_and_ids(pytester: pytest.Pytester, flows: Path) -> None:
    bring(flows, PAIRS, ".flow", ".yaml")
    file = flows / f"{PAIRS}.yaml"
    file.write_text(file.read_text().replace("upstream_id: Bash_0", "upstream_id: Bash_9", 1))
    result = run(pytester)
    result.assert_outcomes(failed=2)
    shown = result.stdout.str()
    for line in ("-    upstream_id: Bash_9", "+    upstream_id: Bash_0", "     tool: Bash"):
        assert line in shown.splitlines()
    assert f"--- {PAIRS}.yaml" in shown
    assert "+++ offline" in shown
    assert "+++ proxy" in shown
    assert f"scripts/test --fast flows/{PAIRS}.flow --update-flows" in shown
    assert "Traceback" not in shown
    assert "judge.py" not in shown


def test_update_writes_what_is_expected_and_says_what_changed(
    pytester: pytest.Pytester, flows: Path
) -> None:
    bring(flows, PAIRS, ".flow", ".yaml")
    file = flows / f"{PAIRS}.yaml"
    was = file.read_text()
    human, _, rest = was.partition("expect:")
    human = human.replace("shows:", "# a note\nshows:")
    file.write_text(human + "expect:" + rest.replace("calls:", "calls: []\n    _calls:", 1))
    run(pytester).assert_outcomes(failed=2)  # not a key that is known
    file.write_text(human + "expect:" + rest.replace("id: Bash_0", "id: Bash_7"))
    result = run(pytester, "flows", "--update-flows")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines([f"*flows/{PAIRS}.flow::update*", "-*id: Bash_7", "+*id: Bash_0"])
    assert file.read_text() == human + "expect:" + rest
    assert "::update" not in run(pytester, "flows", "--update-flows").stdout.str()


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("topics:", "topic:", ":2: unknown key 'topic' at the top*did you mean 'topics'?"),
        ("report:", "report: {}\n#", ":3: 'report' must be text, is keys with values*"),
        (
            "moontap_rewrite:",
            "moontap_rewrit:",
            ":*: unknown key 'moontap_rewrit' under 'options'*",
        ),
        ("made:", "made: ''\n#", ":*: 'made' is empty; write a sentence"),
    ],
)
def test_a_sheet_that_is_wrong_says_where(
    pytester: pytest.Pytester, flows: Path, old: str, new: str, says: str
) -> None:
    bring(flows, NAME, ".flow", ".yaml")
    file = flows / f"{NAME}.yaml"
    lines = [line for line in file.read_text().splitlines() if not line.startswith("  ")]
    text = "\n".join(lines).replace("report:", "report: none known").replace(">-", "it")
    text = text.replace("options:", "options:\n  moontap_rewrite: all").partition("expect:")[0]
    file.write_text(text.replace(old, new, 1))
    result = run(pytester, f"flows/{NAME}.flow::offline")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines([f"flows/{NAME}.yaml{says}"])


def test_a_truncated_file_is_used_as_far_as_it_goes_and_fails(
    pytester: pytest.Pytester, flows: Path
) -> None:
    bring(flows, PAIRS, ".flow", ".yaml")
    file = flows / f"{PAIRS}.flow"
    file.write_bytes(file.read_bytes()[:-100])
    result = run(pytester)
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(
        [
            f"flows/{PAIRS}.flow: 1 damaged record (*); 2 flows could be used",
            "-  - number: 3",
        ]
    )
    sheet_was = (flows / f"{PAIRS}.yaml").read_text()
    run(pytester, "flows", "--update-flows").assert_outcomes(failed=1)
    assert (flows / f"{PAIRS}.yaml").read_text() == sheet_was


@pytest.mark.parametrize("content", [b"", b"no flow at all"])
def test_a_file_that_is_none_fails_in_one_line(
    pytester: pytest.Pytester, flows: Path, content: bytes
) -> None:
    bring(flows, NAME, ".yaml")
    (flows / f"{NAME}.flow").write_bytes(content)
    result = run(pytester)
    result.assert_outcomes(failed=2)
    assert "Traceback" not in result.stdout.str()
    result.stdout.fnmatch_lines([f"flows/{NAME}.flow *"])


def test_a_skeleton_is_a_sheet_but_for_what_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "new.yaml"
    sheet.write(path, {"exchanges": [], "pairs": []}, rewritten=True)
    path.write_text(path.read_text().replace("''", "something"))
    about = sheet.read(path, "new.yaml")
    assert about.options == {"moontap_rewrite": "all"}
    assert about.expect == {"exchanges": [], "pairs": []}
    assert about.expected == sheet.dump({"exchanges": [], "pairs": []})


def test_the_command_is_one_that_the_script_takes() -> None:
    script, *arguments = judge.command("flows/x.flow").split()
    assert (Path(__file__).parents[2] / script).exists()
    assert arguments == ["--fast", "flows/x.flow", "--update-flows"]

"""scripts/bench: its statistics, its payloads, and one tiny run of it against the real addon."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from moontap.capture.reader import FlowFile, Loss
from moontap.care.relog import Seen, relog
from scripts.bench_lib import web
from scripts.bench_lib.__main__ import main
from scripts.bench_lib.bigcapture import write
from scripts.bench_lib.payload import Conversation
from scripts.bench_lib.rig import rig
from scripts.bench_lib.sections import Plan
from scripts.bench_lib.stats import Measure, Ratio, paired

ROOT = Path(__file__).parents[1]


def bench(tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    paths = os.pathsep.join([str(ROOT / "scripts"), str(ROOT / "addon")])
    return subprocess.run(
        [sys.executable, "-P", "-m", "bench_lib", *arguments],
        env=os.environ | {"PYTHONPATH": paths, "TMPDIR": str(tmp_path), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=110,
    )


@pytest.mark.parametrize(
    ("values", "base", "expected"),
    [
        ([2.0], [1.0], Ratio(2, 2, 2)),
        # The machine was four times slower in the second round: the ratio must not see it.
        ([1.1, 4.4, 1.1], [1.0, 4.0, 1.0], Ratio(1.1, 1.1, 1.1)),
        ([1.0, 3.0, 8.0, 2.0], [1.0, 1.0, 2.0, 1.0], Ratio(2.5, 1, 4)),
    ],
)
def test_ratios_are_formed_per_round(
    values: list[float], base: list[float], expected: Ratio
) -> None:
    found = paired(values, base)
    assert (found.median, found.low, found.high) == pytest.approx(
        (expected.median, expected.low, expected.high)
    )


@pytest.mark.parametrize(("values", "base"), [([], []), ([1.0], [0.0]), ([1.0, 2.0], [1.0])])
def test_what_cannot_be_compared_is_an_error(values: list[float], base: list[float]) -> None:
    with pytest.raises(ValueError, match=r"samples above zero|longer|shorter"):
        paired(values, base)


@pytest.mark.parametrize(
    ("target", "missed"), [(1.05, ["all"]), (1.2, []), (None, [])], ids=["above", "below", "none"]
)
def test_only_judged_columns_miss_a_target(target: float | None, missed: list[str]) -> None:
    samples = {"bare": [1.0, 1.0], "again": [1.3, 1.3], "off": [1.0, 1.0], "all": [1.1, 1.1]}
    assert Measure("s", "n", "ms", samples, target, ("off", "all")).missed == missed


@pytest.mark.parametrize(("limit", "missed"), [(1.2, []), (1.0, ["ours"]), (None, [])])
def test_a_limit_holds_for_the_value_itself(limit: float | None, missed: list[str]) -> None:
    samples = {"bare": [9.0, 9.0, 9.0], "ours": [0.9, 1.1, 1.1]}
    row = Measure("s", "n", "ms", samples, None, ("ours",), limit)
    assert row.missed == missed
    assert row.is_judged == (limit is not None)


@pytest.mark.parametrize("size", [1_000, 80_000, 1_000_000])
def test_a_conversation_has_its_size_and_grows_by_a_pair(size: int) -> None:
    conversation = Conversation(size)
    before = conversation.body()
    conversation.answer("Bash_0")
    after = json.loads(conversation.body())
    assert size * 0.7 < len(before) < size * 1.3 + 4_000
    assert after["messages"][:-2] == json.loads(before)["messages"]
    calls = [m["content"][1]["id"] for m in after["messages"] if m["role"] == "assistant"]
    results = [m["content"][0]["tool_use_id"] for m in after["messages"][1:] if m["role"] == "user"]
    assert calls == results
    assert len(set(calls)) == len(calls)


def test_a_run_prints_a_table_and_writes_every_sample(tmp_path: Path) -> None:
    file = tmp_path / "out" / "bench.json"
    done = bench(tmp_path, "--quick", "--rounds", "1", "--only", "ttfb,wire", "--json", str(file))

    assert done.returncode == 0, done.stderr
    assert {"bare", "bare again", "off", "duplicates", "all", "≤ 1.05"} <= {
        cell.strip() for cell in done.stdout.replace("┃", "│").split("│")
    }
    assert "targets met on" in done.stdout
    report = json.loads(file.read_text())
    assert report["v"] == 1
    assert report["options"] == {"quick": True, "only": ["ttfb", "wire"], "rounds": 1}
    assert set(report["versions"]) == {"python", "mitmproxy", "moontap"}
    assert str(ROOT) not in file.read_text()
    assert {row["section"] for row in report["measures"]} == {"ttfb", "wire"}
    for row in report["measures"]:
        assert set(row) == {
            *("section", "name", "unit", "samples", "target", "limit"),
            *("judged", "ratios", "missed"),
        }
        assert {len(values) for values in row["samples"].values()} == {1}
        assert all(value > 0 for values in row["samples"].values() for value in values)
        assert set(row["ratios"]) == set(row["samples"])
    assert list(tmp_path.glob("moontap-bench-*")) == []


def test_reading_a_large_capture_is_measured(tmp_path: Path) -> None:
    file = tmp_path / "bench.json"
    arguments = ("--quick", "--rounds", "1", "--only", "reading", "--capture", "4")
    done = bench(tmp_path, *arguments, "--json", str(file))
    assert done.returncode == 0, done.stderr
    speed, peak, growth = json.loads(file.read_text())["measures"]
    assert [row["name"] for row in (speed, peak, growth)] == [
        "reading 4 MB",
        "peak RSS, reading 4 MB",
        "peak RSS, 4 MB / 1 MB",
    ]
    assert (speed["unit"], speed["target"], speed["judged"]) == (
        *("ns/byte", 2.0),
        ["moontap's reader"],
    )
    columns = ["mitmproxy's reader", "moontap's reader", "pairs --jsonl", "replay's index"]
    for row in (speed, peak, growth):
        assert list(row["samples"]) == columns
        assert all(value > 0 for (value,) in row["samples"].values())
    assert list(tmp_path.glob("moontap-bench-*")) == []


def test_mitmweb_is_measured_with_a_page_open_on_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """In this process, with two lanes, and with less to show than in a run."""
    monkeypatch.setattr(web, "_REQUEST", 100_000)
    plan = Plan(ROOT / "addon" / "main.py", 1, 2, 5, 300, {}, ())
    with rig(plan.addon, ("bare", "off"), web=True) as lanes, web.opened(lanes, False) as pages:
        looker = pages.looker
        live = web.live(lanes, plan)
        waits = web.waits(lanes, pages, plan, 60)
    assert looker == "a client of its updates (no browser)"
    assert [row.name.partition(": ")[2] for row in live] == [
        *("first byte, 1 KB request", "first byte, 80 KB request"),
        *("chunk, one each 5 ms", "chunk, flooding"),
    ]
    assert {(row.target, row.judged) for row in live} == {(1.15, ("off",))}
    shown = [row for row in waits if row.name.endswith("shown")]
    assert [row.limit for row in shown] == [1_000.0] * 3
    assert {row.name for row in waits if row not in shown} == {
        *("60 flows loaded", "RSS with 60 flows", "GET /flows, 60 flows"),
        *("~meta tool=Bash, 60 flows", "one flow updated, 60 flows"),
    }
    for row in (*live, *waits):
        assert list(row.samples) == ["bare", "off"]
        assert all(value > 0 for values in row.samples.values() for value in values)


@pytest.mark.parametrize("size", [200_000, 3_000_000])
def test_the_capture_that_is_read_is_one_of_ours(tmp_path: Path, size: int) -> None:
    path = tmp_path / "made.flow"
    count = write(path, size)
    assert size <= path.stat().st_size < size + 400_000
    file, seen = FlowFile(path), Seen()
    lines = list(relog(file, seen))
    assert (file.count, file.loss) == (count, Loss())
    assert (seen.exchanges, seen.paired, seen.unread) == (count, count, [])
    live = [line for line in lines if line["source"] == "live"]
    assert len(live) == count
    assert {(line["upstream_id"], line["rewritten"]) for line in live} == {("Bash_0", True)}
    assert {line["status"] for line in lines} <= {"ok", "unanswered"}


def test_a_lane_that_does_not_rewrite_is_no_measurement(tmp_path: Path) -> None:
    idle = ROOT / "scripts" / "bench_lib" / "bare.py"
    file = tmp_path / "bench.json"
    done = bench(tmp_path, "--only", "ttfb", "--addon", str(idle), "--json", str(file))
    assert done.returncode == 1
    assert "'duplicates' does not treat call ids as it should" in done.stderr
    assert not file.exists()
    assert list(tmp_path.glob("moontap-bench-*")) == []


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["--rounds", "0"], "above zero"),
        (["--capture", "0"], "above zero"),
        (["--flows", "no"], "above zero"),
        (["--only", "ttfb,speed"], "no such section: speed"),
        (["--addon", "missing.py"], "no addon at missing.py"),
    ],
)
def test_wrong_usage(
    arguments: list[str],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["bench", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert reason in capsys.readouterr().err

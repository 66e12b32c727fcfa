"""One line changed in the rewriter, the pairing or the framing makes a named flow fail.

Each row changes one line of a copy of the addon, and runs its flows against that copy.
"""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Mutation:
    """file: below addon/moontap. old: a line, or its part that stands there once. fails: flows."""

    file: str
    old: str
    new: str
    fails: tuple[str, ...]


MUTATIONS = {
    "rewriter: parts after a kept id": Mutation(
        "rewrite.py",
        "return change.id if change.id != change.upstream_id else site.id",
        "return change.id",
        ("chat-id-each-fragment-kept::offline",),
    ),
    "rewriter: choices apart": Mutation(
        "rewrite.py",
        "key = (site.generation, site.choice, site.index)",
        "key = (site.generation, 0, site.index)",
        ("chat-several-choices-stream::offline",),
    ),
    "rewriter: whole events at once": Mutation(
        "rewrite.py",
        'whole_events = framer.idle and data.endswith(b"\\n\\n")',
        "whole_events = framer.idle",
        ("framing-chunk-cuts::proxy",),
    ),
    "healing: one id a place": Mutation(
        "rewrite.py",
        "ordinal[call.id] = ordinal.get(call.id, 0) + 1",
        "ordinal[call.id] = 2",
        ("messages-healing-stream::offline", "chat-healing-whole::offline"),
    ),
    "pairing: the first such call": Mutation(
        "pairing.py",
        "self.answers[stack[-1].pop()]",
        "self.answers[stack[-1].pop(0)]",
        ("chat-empty-ids::offline", "messages-empty-ids-whole::offline"),
    ),
    "pairing: the latest message": Mutation(
        "pairing.py",
        "self.answers[stack[-1].pop()]",
        "self.answers[stack[0].pop()]",
        ("messages-missing-result::offline",),
    ),
    "framing: a space after the colon": Mutation(
        "wire/sse.py",
        "if value < end and buffer[value] == 0x20:",
        "if value < end:",
        ("framing-data-without-space::offline",),
    ),
    "framing: lines that end in CR": Mutation(
        "wire/sse.py",
        '_NEWLINE = re.compile(rb"\\r\\n|\\n|\\r")',
        '_NEWLINE = re.compile(rb"\\r\\n|\\n")',
        ("framing-carriage-returns::offline",),
    ),
    "framing: a line feed that comes later": Mutation(
        "wire/sse.py",
        "self._after_cr = bool(data) and size > 0 and buffer[-1] == 0x0D",
        "self._after_cr = False",
        ("framing-crlf-torn::proxy",),
    ),
}


def test_each_change_is_found(tmp_path: Path) -> None:
    """One test for all: what they have in common, which is loading mitmproxy, takes the longest.
    That these flows pass without a change is a test for each of them, elsewhere."""
    found = verdicts(tmp_path)
    missed = [
        f"{name}: {flow}"
        for name, flows in found.items()
        for flow, wrong in flows.items()
        if not wrong
    ]
    assert missed == []
    assert found.keys() == MUTATIONS.keys()


def verdicts(folder: Path) -> dict[str, dict[str, str | None]]:
    """What is wrong with each flow of a row."""
    rows = []
    for number, mutation in enumerate(MUTATIONS.values()):
        addon = folder / str(number) / "addon"
        mutate(mutation, addon)
        rows.append((str(addon), [item(flow) for flow in mutation.fails]))
    done = subprocess.run(
        [sys.executable, "-m", "tests.golden.mutants"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "PYTHONPATH": str(ROOT)},
        input=json.dumps(rows),
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(lines) == len(rows), done.stderr
    return {
        name: dict(zip(mutation.fails, line, strict=True))
        for (name, mutation), line in zip(MUTATIONS.items(), lines, strict=True)
    }


def item(flow: str) -> tuple[str, str]:
    """`name::way` as the file and the way."""
    name, _, way = flow.partition("::")
    return f"flows/{name}.flow", way


def mutate(mutation: Mutation, folder: Path) -> None:
    """Copy the addon to a folder, with its one line changed."""
    shutil.copytree(ROOT / "addon", folder)
    file = folder / "moontap" / mutation.file
    text = file.read_text(encoding="utf-8")
    assert text.count(mutation.old) == 1, f"{mutation.file} has no such line: {mutation.old}"
    file.write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")

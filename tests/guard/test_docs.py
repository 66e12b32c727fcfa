"""What docs/guard.md shows is so."""

from __future__ import annotations

import json
import re
from pathlib import Path

from moontap.findings.progress import Step, Streak
from moontap.guard import refusal, texts
from moontap.rules import Guard, load_rules

DOCS = (Path(__file__).resolve().parents[2] / "docs" / "guard.md").read_text("utf-8")


def test_the_rules_file_is_one(tmp_path: Path) -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", DOCS, re.DOTALL)
    path = tmp_path / "rules.yaml"
    path.write_text(text, encoding="utf-8")
    rules = load_rules(str(path))
    assert rules.guard == Guard(calls=200, minutes=60, tokens=2000000)  # the rest: the defaults
    assert (rules.tools.of("charge_card"), rules.tools.of("Edit")) == ("pay", "write")


def test_the_reminder_is_what_the_model_reads() -> None:
    shown = json.loads(re.findall(r"```json\n(.*?)```", DOCS, re.DOTALL)[0])
    step = Step("Bash", b"", b"", text=b'{"command":"ls"}')
    text = texts.reminder(Streak(3, (step,), step), 0, str)
    assert shown == {"type": "text", "text": text}


def test_the_answer_is_what_the_client_gets() -> None:
    status, *headers = re.findall(r"```\n(HTTP.*?)```", DOCS, re.DOTALL)[0].splitlines()
    assert status == f"HTTP/1.1 {refusal.STATUS} Locked"
    assert headers == [f"{name.decode()}: {value.decode()}" for name, value in refusal.HEADERS]

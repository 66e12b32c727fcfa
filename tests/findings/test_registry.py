from __future__ import annotations

import pkgutil
import re

from moontap.findings import checks
from moontap.findings.check import Check
from moontap.findings.registry import all_checks, could_not_run
from moontap.findings.types import Part, Party, Severity

FIXED = {
    "id-reused",
    "id-reused-in-response",
    "id-empty",
    "call-unanswered",
    "result-orphan",
    "result-duplicated",
    "pair-dropped-by-client",
    "empty-user-turn",
    "arguments-invalid",
    "arguments-off-schema",
    "tool-undeclared",
    "call-truncated",
    "reasoning-dropped",
    "markup-leaked",
    "stream-cut",
    "request-retried",
    "no-progress",
    "api-refused",
}
"""The codes that others rely on: none may be renamed."""


def test_every_module_of_checks_is_one_and_is_named_after_its_code() -> None:
    modules = {module.name for module in pkgutil.iter_modules(checks.__path__)}
    codes = [check.code for check in all_checks()]
    assert codes == sorted(set(codes))
    assert {code.replace("-", "_") for code in codes} == modules
    assert set(codes) >= FIXED


def test_every_check_says_what_it_is() -> None:
    for check in all_checks():
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", check.code)
        assert check.title, check.code
        assert check.explained, check.code
        assert check.example, check.code
        assert check.remedy.endswith("."), check.code
        assert "moontap run --" in check.remedy or len(check.remedy) < 400, check.code


def _check(code: str, needs: Part) -> Check:
    return Check(code, needs, Severity.INFO, Party.API, "", "", "", "", lambda turn: ())


def test_what_could_not_run_needs_more_than_there_is() -> None:
    among = [
        _check("nothing", Part(0)),
        _check("history", Part.HISTORY),
        _check("both", Part.HISTORY | Part.TURNS),
    ]
    left = {
        parts: [check.code for check in could_not_run(parts, among)]
        for parts in (Part(0), Part.HISTORY, Part.HISTORY | Part.TURNS | Part.REPLY)
    }
    assert list(left.values()) == [["history", "both"], ["both"], []]
    assert {check.code for check in could_not_run(Part.HISTORY)} >= {
        "stream-cut",
        "request-retried",
    }

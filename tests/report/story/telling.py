"""Accounts for the tests of this folder: conversations through the real path, with findings that
the test chooses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from moontap.capture.diagnosis import Diagnosis
from moontap.findings.types import Evidence, Finding, Party, Severity
from moontap.report.story.conversation import Account
from moontap.report.story.told import Told
from moontap.rules import Rules
from tests.findings.rig import Ex, flows, message, result, said, text, use, user


def finding(
    code: str,
    exchange: int = 1,
    severity: Severity = Severity.WARNING,
    party: Party = Party.API,
    **more: Any,
) -> Finding:
    """A finding about nothing but its code."""
    given: dict[str, Any] = {
        "message": f"It is about {code}.",
        "remedy": f"Mend {code}.",
        "evidence": Evidence(),
        "session": "s",
        "conversation": 1,
        "flow": f"flow-{exchange}",
    }
    return Finding(code, severity, party, exchange=exchange, **(given | more))


def account(
    exchanges: Iterable[Ex], findings: Iterable[Finding] = (), rules: Rules | None = None
) -> Account:
    """The account of a conversation. What the checks find in it is left out."""
    given = list(findings)
    made: Account | None = None
    for looked in Diagnosis(rules).flows(flows(*exchanges)):
        assert looked.turn, looked.unread
        made = made or Account.of(looked.turn)
        made.add(looked.turn, [one for one in given if one.exchange == looked.number])
    assert made
    return made


def rounds(
    commands: Sequence[str],
    *,
    id_: str = "Bash_{}",
    lost: bool = False,
    results: Mapping[int, str] | None = None,
    final: str = "",
    **more: Any,
) -> list[Ex]:
    """An agent that runs these commands, one a turn. id_: with `{}` in it numbered. lost: the
    client drops each call but the first. final: what the model says at the end."""
    history: list[Any] = [user("go")]
    made = []
    for number, command in enumerate(commands):
        name = id_.format(number)
        made.append(Ex(list(history), message(use(name, "Bash", command=command)), **more))
        if lost and number:
            history += [said("(no content)"), user("(no content)")]
        else:
            call = use(name, "Bash", command=command)
            answer = (results or {}).get(number, f"did {command}")
            history += [said(call), user(result(name, answer))]
    if final:
        made.append(Ex(list(history), message(text(final)), **more))
    return made


def letters(pattern: str) -> list[Told]:
    """An exchange for each letter; the same letter, the same answer."""
    return [Told(number, None, status=ord(letter)) for number, letter in enumerate(pattern, 1)]

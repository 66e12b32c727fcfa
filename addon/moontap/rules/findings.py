"""The section `findings`: which checks run, how much they matter, and what is slow."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from moontap import yamlfile
from moontap.findings.codes import codes
from moontap.findings.types import Severity
from moontap.rules import fields

FIRST_BYTE_S = 60.0
SILENCE_S = 60.0


@dataclass(frozen=True, slots=True)
class FindingRules:
    """off: codes of checks that do not run. severity: by code, in place of the check's own.

    first_byte_s: seconds until a response begins, silence_s: seconds without a chunk within it,
    from which they are found.
    """

    off: frozenset[str] = frozenset()
    severity: Mapping[str, Severity] = field(default_factory=dict)
    first_byte_s: float = FIRST_BYTE_S
    silence_s: float = SILENCE_S


def read(node: yamlfile.Node) -> FindingRules:
    """The section's value. Raises YamlError."""
    parts = node.members(known=("off", "severity", "first_byte_s", "silence_s"))
    given = fields.members(parts.get("severity"), known=codes())
    first, silence = parts.get("first_byte_s"), parts.get("silence_s")
    return FindingRules(
        off=frozenset(item.choice(codes()) for item in fields.items(parts.get("off"))),
        severity={
            code: Severity(value.choice([one.value for one in Severity]))
            for code, value in given.items()
        },
        first_byte_s=FIRST_BYTE_S if first is None else first.number(minimum=0),
        silence_s=SILENCE_S if silence is None else silence.number(minimum=0),
    )

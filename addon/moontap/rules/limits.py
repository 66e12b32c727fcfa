"""The section `limits`: how much is kept."""

from dataclasses import dataclass

from moontap import yamlfile

RESULT_BYTES = 65536


@dataclass(frozen=True, slots=True)
class Limits:
    """result_bytes: a longer tool result is cut in the pair log."""

    result_bytes: int = RESULT_BYTES


def read(node: yamlfile.Node) -> Limits:
    """The section's value. Raises YamlError."""
    limit = node.members(known=("result_bytes",)).get("result_bytes")
    return Limits(RESULT_BYTES if limit is None else limit.integer(minimum=0))

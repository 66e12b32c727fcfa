"""`reproduce.py` of a bundle: what was captured put into the program of this folder.

What to ask for in, the text of the program out. It needs httpx alone, which both official SDKs
bring, and nothing of moontap; it is copied, never imported.
"""

from dataclasses import dataclass
from importlib import resources
from typing import Any

from moontap.wire.types import Protocol

NAME = "reproduce.py"
KEY, BASE_URL = "MOONSHOT_API_KEY", "MOONSHOT_BASE_URL"
"""The variables that it reads."""

_PROGRAM = "program.py"
_BEGIN, _END = "# Captured:\n", "# End of what was captured.\n"


@dataclass(frozen=True, slots=True)
class Captured:
    """What the program asks for. base_url: as a client takes it, or the whole URL. tools: their
    definitions, as the request declared them. at_once: how many calls one reply is to make."""

    protocol: Protocol
    base_url: str
    model: str
    stream: bool
    tools: list[Any]
    names: list[str]
    at_once: int = 1

    @property
    def values(self) -> dict[str, Any]:
        """The program's constants."""
        return {
            "BASE_URL": self.base_url,
            "MODEL": self.model,
            "STREAM": self.stream,
            "TOOLS": self.tools,
            "ASKED": _asked(self.names, self.at_once),
        }


def program(protocol: Protocol, values: dict[str, Any]) -> str:
    """The program, with its constants as given. The protocol is none of them: a rule that scrubs
    words is not to change it."""
    file = resources.files(__package__) / _PROGRAM
    before, _, rest = file.read_text("utf-8").partition(_BEGIN)
    _, _, after = rest.partition(_END)
    lines = [f"PROTOCOL = {protocol.value!r}\n"]
    for name, value in values.items():
        of_type = ": list[Any]" if isinstance(value, list) else ""
        lines.append(f"{name}{of_type} = {_literal(value)}\n")
    return f"{before}{_BEGIN}{''.join(lines)}{_END}{after}"


def _asked(names: list[str], at_once: int) -> str:
    if at_once > 1:
        return f"{at_once} times, all in one reply, a tool out of these: {', '.join(names)}"
    return f"the {names[0]} tool" if len(names) == 1 else f"one of these tools: {', '.join(names)}"


def _literal(value: Any, indent: str = "") -> str:
    """A JSON value as Python says it, a member a line: no string is parted."""
    inner = indent + "    "
    if isinstance(value, dict) and value:
        members = (f"{inner}{name!r}: {_literal(one, inner)},\n" for name, one in value.items())
        return f"{{\n{''.join(members)}{indent}}}"
    if isinstance(value, list) and value:
        return "[\n" + "".join(f"{inner}{_literal(one, inner)},\n" for one in value) + f"{indent}]"
    return repr(value)

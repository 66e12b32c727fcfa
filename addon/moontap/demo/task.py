"""The demo's task: three small files, tools that read them, and the model's way through it.

Data and pure functions. The model is a stand-in that follows this script; a step whose result it
does not see, it asks for again, as the real one does.
"""

from collections.abc import Callable, Mapping
from typing import Any

from moontap.standin.script import Call, Conversation, Pacing, Script, Step

QUESTION = "How many lamps did we sell in all?"
ANSWER = "200 lamps: 120 in the north, 80 in the south."

FILES = {
    "plan.md": "Add up the lamps of north.csv and south.csv.",
    "north.csv": "lamps,120",
    "south.csv": "lamps,80",
}


def list_files(arguments: Mapping[str, Any]) -> str:
    """The names of the files."""
    return " ".join(FILES)


def read_file(arguments: Mapping[str, Any]) -> str:
    """What a file holds."""
    return FILES[arguments["path"]]


def add(arguments: Mapping[str, Any]) -> str:
    """The sum of some numbers."""
    return str(sum(arguments["numbers"]))


TOOLS: dict[str, Callable[[Mapping[str, Any]], str]] = {
    tool.__name__: tool for tool in (list_files, read_file, add)
}


def _step(text: str, *calls: Call) -> Step:
    return Step(calls=calls, text=text)


SCRIPT = Script(
    default=Conversation(
        steps=(
            _step("I look at what is there.", Call("list_files")),
            _step("There is a plan.", Call("read_file", {"path": "plan.md"})),
            _step(
                "I read both tables.",
                Call("read_file", {"path": "north.csv"}),
                Call("read_file", {"path": "south.csv"}),
            ),
            _step("Now the sum.", Call("add", {"numbers": [120, 80]})),
        ),
        final=ANSWER,
    ),
    pacing=Pacing(first_byte_ms=20, event_ms=2),
)
"""Ids restart in every reply, so `read_file_0` comes twice: for the plan and for north.csv."""

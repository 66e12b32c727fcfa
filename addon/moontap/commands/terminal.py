"""Text to stdout or stderr of a command that goes on when nobody reads it any more.

Text in, text on a stream out. It never raises for a reader that left.
"""

import os
import sys
from typing import TextIO


def put(text: str, stream: TextIO | None) -> None:
    """Write a text at once; nowhere, where there is no stream.

    `moontap proxy | head -3` closes the pipe while agents still go through the tap. What comes
    later goes nowhere, the interpreter's own flush at its end among it.
    """
    if stream is None:
        return
    try:
        stream.write(text)
        stream.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


def stand_in_for_closed() -> None:
    """Where the shell has closed a standard stream (`<&-`, `>&-`), the null device takes its place.

    Python has `None` there then; and the first file that is opened would get the stream's number,
    so that what a child prints would go into it.
    """
    modes = {"stdin": "r", "stdout": "w", "stderr": "w"}
    for name, mode in modes.items():
        if getattr(sys, name) is None:
            nowhere = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(nowhere, True)
            setattr(sys, name, os.fdopen(nowhere, mode))

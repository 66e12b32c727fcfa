"""How a person would type the name of a program that was installed with moontap.

A name in, a word for a shell out. It runs nothing.
"""

import shlex
import shutil
import sys
from pathlib import Path


def typed(name: str) -> str:
    """The bare name where PATH has it, else the path beside this interpreter.

    `scripts/demo` runs moontap out of `.venv`, which is on nobody's PATH.
    """
    beside = Path(sys.executable).parent / name
    if shutil.which(name) or not beside.exists():
        return name
    cwd = Path.cwd()
    return shlex.quote(str(beside.relative_to(cwd) if beside.is_relative_to(cwd) else beside))

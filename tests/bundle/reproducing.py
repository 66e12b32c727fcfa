"""How tests run a reproduce.py: as a process that finds nothing of moontap or of its person."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path


async def run(folder: Path, code: str, *arguments: str, **environment: str) -> tuple[int, str, str]:
    """Its exit code and what it said."""
    file = folder / "reproduce.py"
    file.write_text(code, encoding="utf-8")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-I", str(file), *arguments),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), **environment},
    )
    out, err = await process.communicate()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()

"""`moontap standin`; what it serves is tested in tests/standin/, and that it serves in README's."""

from __future__ import annotations

import pytest

from tests.cli.commands import Moontap


@pytest.mark.parametrize(
    ("arguments", "code", "out", "err"),
    [
        (["--help"], 0, "usage: moontap standin [-h] [--port PORT]", ""),
        (["--prt", "3"], 2, "", "moontap standin: error: unrecognized arguments: --prt 3"),
        (["--mint", "none"], 2, "", "moontap standin: error: argument --mint: invalid"),
        (["--script", "absent.yaml"], 2, "", "standin: absent.yaml"),
    ],
)
def test_its_options_are_its_own(
    moontap_command: Moontap, arguments: list[str], code: int, out: str, err: str
) -> None:
    done = moontap_command.run("standin", *arguments)
    assert (done.returncode, out in done.stdout, err in done.stderr) == (code, True, True), done

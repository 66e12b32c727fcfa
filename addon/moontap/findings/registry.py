"""The checks there are: the `CHECK` of each module of `findings.checks`.

Adding one is adding a module there. No order: a check sees the turn, never what others found.
"""

from collections.abc import Iterable
from functools import cache
from importlib import import_module

from moontap.findings import checks
from moontap.findings.check import Check
from moontap.findings.codes import codes
from moontap.findings.types import Part


@cache
def all_checks() -> tuple[Check, ...]:
    """Every check, by its code."""
    modules = [import_module(f"{checks.__name__}.{code.replace('-', '_')}") for code in codes()]
    return tuple(module.CHECK for module in modules)


def could_not_run(parts: Part, among: Iterable[Check] | None = None) -> list[Check]:
    """The checks that need more than these parts."""
    every = all_checks() if among is None else among
    return [check for check in every if check.needs & ~parts]

"""The codes of all checks, told by the names of their modules, of which none is loaded.

`findings/checks/id_reused.py` holds the check `id-reused`. Pure.
"""

import pkgutil
from functools import cache

from moontap.findings import checks


@cache
def codes() -> tuple[str, ...]:
    """In alphabetical order."""
    names = (found.name for found in pkgutil.iter_modules(checks.__path__))
    return tuple(sorted(name.replace("_", "-") for name in names))

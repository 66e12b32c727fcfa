"""The recipes of all flow files, by name; one module for each kind of thing they show."""

from scripts.flows_lib.recipes import (
    clients,
    diagnosis,
    failures,
    findings,
    framing,
    histories,
    ids,
    standin,
)
from scripts.flows_lib.scene import Recipe

RECIPES: dict[str, Recipe] = {
    **standin.RECIPES,
    **ids.RECIPES,
    **histories.RECIPES,
    **failures.RECIPES,
    **framing.RECIPES,
    **findings.RECIPES,
    **diagnosis.RECIPES,
    **clients.RECIPES,
}
"""File name without `.flow` -> how it is made."""

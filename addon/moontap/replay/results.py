"""Rules under which any tool result will do: what a tool answers changes from day to day.

Rules in, rules out. Pure.
"""

from dataclasses import replace

from moontap.jsonpaths import compile_path
from moontap.rules import Rules

_RESULTS = tuple(
    map(
        compile_path,
        (
            '$.messages[?@.role=="tool"].content',
            "$.messages[*].content[?@.type=='tool_result']['content', 'is_error']",
        ),
    )
)


def any_result(rules: Rules) -> Rules:
    """The same rules, save that what a tool answered does not count."""
    matching = replace(rules.replay, ignore=(*rules.replay.ignore, *_RESULTS))
    return replace(rules, replay=matching)

"""What models of the Kimi family ask of a request beyond the protocol, as far as it is known.

A model's name in, a row of the table out. Plain data, each row with its source and date; a model
that is not in it is asked for nothing.
"""

import re
from dataclasses import dataclass

from moontap.wire import jsontext
from moontap.wire.types import Asked


@dataclass(frozen=True, slots=True)
class Model:
    """family: how it is called. always: its thinking cannot be turned off.

    refuses: a message with calls and without its thinking is refused (a 400), else it only makes
    the model worse. empty: an empty `reasoning_content` counts as none. choices: the kinds of
    `tool_choice` that are refused while it thinks: `named`, `required`. source: where and when
    this was said.
    """

    pattern: re.Pattern[str]
    family: str
    always: bool
    refuses: bool
    empty: bool
    choices: frozenset[str]
    source: str


def _row(pattern: str, family: str, choices: str, source: str, **more: bool) -> Model:
    compiled = re.compile(rf"(?:^|[/:@]){pattern}(?![\w.])", re.IGNORECASE)
    given = {"always": False, "refuses": True, "empty": True, **more}
    return Model(compiled, family, choices=frozenset(choices.split()), source=source, **given)


MODELS = (
    _row(
        r"(?:kimi-)?k3(?:\.\d+)?(?:-\w+)*",
        "K3",
        "named",
        "platform.kimi.ai/docs/guide/use-thinking-models (thinks always, history to be kept), "
        "2026-08; github.com/can1357/oh-my-pi/pull/5994 (named refused, required taken), "
        "2026-07-18",
        always=True,
        refuses=False,
    ),
    _row(
        r"kimi-k2\.7(?:-\w+)*",
        "K2.7",
        "named required",
        "github.com/UKGovernmentBEIS/inspect_ai/pull/5152 (both refused), 2026-08-31; "
        "github.com/HKUDS/nanobot/pull/4361 (thinks always), 2026-06-16",
        always=True,
    ),
    _row(
        r"(?:kimi-k2[.p-]?[56]|k2p[56]|kimi-for-coding)(?:-\w+)*",
        "K2.5 or K2.6",
        "named required",
        "github.com/theopenco/llmgateway/pull/2093 (empty counts as missing) and /2090 (required "
        "refused), 2026-04-26; github.com/can1357/oh-my-pi/issues/827 (named), 2026-04-27",
    ),
    _row(
        r"kimi-k2-thinking(?:-\w+)*",
        "K2 Thinking",
        "",
        "github.com/Lapis0x0/obsidian-yolo/pull/243 (missing is refused), 2026-04-18; "
        "github.com/theopenco/llmgateway/pull/2093 (empty is taken), 2026-04-26",
        always=True,
        empty=False,
    ),
)


def model_of(name: str | None) -> Model | None:
    """The row of a model; None where nothing is known of it."""
    return next((model for model in MODELS if model.pattern.search(name or "")), None)


def thinks(model: Model, asked: Asked) -> bool:
    """Whether it thinks in this request: always, or unless the request turns it off."""
    if model.always or not asked.thinking:
        return True
    try:
        setting = jsontext.loads(asked.thinking)
    except ValueError:
        return True
    return not (isinstance(setting, dict) and setting.get("type") == "disabled")

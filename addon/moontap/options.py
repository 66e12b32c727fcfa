"""The addon's options: declared for mitmproxy, and checked.

Values as people set them go in, values the addon works with come out; `OptionsError` names the
option and what it takes, because mitmproxy does not enforce `choices`.
"""

import ipaddress
from collections.abc import Sequence
from pathlib import Path
from typing import Optional

from mitmproxy import exceptions
from mitmproxy.addonmanager import Loader

from moontap.guard.types import Guarding
from moontap.ids import Mode, Style
from moontap.looking.views.page import FOLD
from moontap.rules import Rules, RulesError, load_rules

HOSTS = ("api.moonshot.cn", "api.moonshot.ai", "api.kimi.com")


def declare(loader: Loader) -> None:
    """Make the options known."""
    loader.add_option(
        "moontap_hosts",
        Sequence[str],
        list(HOSTS),
        "Hosts whose traffic moontap reads; TLS to any other passes through undecrypted. The "
        "target of reverse mode always counts. Takes effect with the next connection.",
    )
    loader.add_option(
        "moontap_rewrite",
        str,
        Mode.OFF.value,
        "Make tool-call ids unique, so that the agent keeps each result with its call: off, "
        "duplicates (only ids already used in the conversation), all (every id). Takes effect "
        "with the next request.",
        choices=[mode.value for mode in Mode],
    )
    loader.add_option(
        "moontap_id_style",
        str,
        Style.AUTO.value,
        "What a new id looks like: opaque (Bash_0_t5q...), native (functions.Bash:7, the shape "
        "that K2 models know), auto (native for K2 models, else opaque). Takes effect with the "
        "next request.",
        choices=[style.value for style in Style],
    )
    loader.add_option(
        "moontap_dir",
        str,
        "moontap-captures",
        "Folder in which each run makes its own capture folder; empty keeps nothing on disk. "
        "A change after the first exchange needs a restart.",
    )
    loader.add_option(
        "moontap_guard",
        str,
        Guarding.WARN.value,
        "What happens when an agent makes no progress: off (it is written down), warn (it is "
        "said), remind (the model is told, within the request), block (past the limit of the "
        "rules, moontap answers with an error). Takes effect with the next request.",
        choices=[guarding.value for guarding in Guarding],
    )
    loader.add_option(
        "moontap_rules",
        Optional[str],  # type: ignore[arg-type]  # noqa: UP045  (the form mitmproxy knows)
        None,
        "YAML file with rules: what else is secret, limits, findings, the guard. Read when it is "
        "set; a later change of the file, and any after the first exchange, needs a restart.",
    )
    loader.add_option(
        "moontap_notes",
        bool,
        True,
        "Write into the flow list what each exchange came to: a comment, and a mark where "
        "something needs a look. Your own comments and marks stay. Takes effect at once.",
    )
    loader.add_option(
        "moontap_fold",
        int,
        FOLD,
        "Characters of a text that moontap's views show before they fold it; 0 shows all. Takes "
        "effect when a flow is opened next.",
    )


def fold(most: int) -> int | None:
    """How many characters of a text the views show; None shows all. Raises OptionsError."""
    if most < 0:
        raise exceptions.OptionsError(
            f"moontap_fold: {most} is less than 0; give a number of characters, 0 shows all"
        )
    return most or None


def rules(path: str | None) -> Rules:
    """The rules in force. Raises OptionsError."""
    try:
        return load_rules(path)
    except RulesError as error:
        raise exceptions.OptionsError(f"moontap_rules: {error}") from None


def hosts(names: Sequence[str]) -> frozenset[str]:
    """The tapped hosts, in lower case. Raises OptionsError."""
    for name in names:
        if not is_host(name):
            raise exceptions.OptionsError(
                f"moontap_hosts: {name!r} is not a host name; give names such as "
                "api.moonshot.cn, without scheme, port or path, one for each --set moontap_hosts"
            )
    return frozenset(name.lower() for name in names)


def is_host(name: str) -> bool:
    """Whether it can be the name or the address of a host, and nothing but that."""
    try:
        return bool(ipaddress.ip_address(name))
    except ValueError:
        return bool(name) and not any(mark in name for mark in "/:*, ")


def folder(name: str) -> Path | None:
    """Where captures go; None keeps nothing. Raises OptionsError."""
    if not name:
        return None
    try:
        path = Path(name).expanduser()
    except RuntimeError as error:  # ~nobody
        raise exceptions.OptionsError(f"moontap_dir: {name!r}: {error}") from None
    if path.exists() and not path.is_dir():
        raise exceptions.OptionsError(f"moontap_dir: {name!r} is a file; give a folder")
    return path


def choice[T: (Mode, Style, Guarding)](option: str, kind: type[T], value: str) -> T:
    """The value of an option with a closed set of values. Raises OptionsError."""
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(member.value for member in kind)
        raise exceptions.OptionsError(f"{option}: {value!r} is not one of {known}") from None

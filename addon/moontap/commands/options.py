"""The options that `run` and `proxy` share, and the help form of every command.

Parsed options in, tap settings out. It looks at files and folders only to say early what is wrong.
"""

import argparse
import os
import shlex
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

from moontap.commands import UsageError
from moontap.tapping import upstream

if TYPE_CHECKING:
    from moontap.tapping.tap import Settings

type Commands = "argparse._SubParsersAction[Parser]"


class Parser(argparse.ArgumentParser):
    """argparse, with errors of one line."""

    def __init__(self, **more: Any) -> None:
        super().__init__(
            formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **more
        )

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; see {self.prog} --help\n")


def add_tap_options(parser: argparse.ArgumentParser, *, port: int) -> None:
    """Add what says how the tap is to be. port: the default; 0 takes a free one."""
    parser.add_argument(
        "--rewrite",
        choices=("off", "duplicates", "all"),
        default="all",
        help="which tool-call ids become unique: none, those used before, or all (the default)",
    )
    parser.add_argument(
        "--id-style",
        choices=("auto", "opaque", "native"),
        default="auto",
        help="what a new id looks like: opaque (Bash_0_tq4k2xw7m3a), native "
        "(functions.Bash:7), or auto (the default): native for K2 models, else opaque",
    )
    parser.add_argument(
        "--upstream",
        metavar="URL",
        help="the server behind the tap; default: the one that ANTHROPIC_BASE_URL, "
        f"OPENAI_BASE_URL or KIMI_BASE_URL names, else {upstream.DEFAULT}",
    )
    parser.add_argument(
        "--upstream-ca",
        metavar="FILE",
        help="PEM file to trust for a server with its own certificate authority",
    )
    where = "default: a free one" if port == 0 else f"default: {port}; 0 takes a free one"
    parser.add_argument(
        "--port", type=port_number, default=port, metavar="N", help=f"on 127.0.0.1; {where}"
    )
    parser.add_argument(
        "--dir",
        default="moontap-captures",
        metavar="DIR",
        help='where each run makes its own folder (default: moontap-captures); "" keeps nothing',
    )
    parser.add_argument(
        "--guard",
        choices=("off", "warn", "remind", "block"),
        default="warn",
        help="when an agent makes no progress: only write it down, say it (the default), remind "
        "the model within the request, or answer with an error past the limit of the rules",
    )
    parser.add_argument(
        "--rules", metavar="FILE", help="YAML file with rules: redaction, limits, the guard"
    )


def settings(
    options: argparse.Namespace, environment: Mapping[str, str]
) -> "tuple[Settings, tuple[str, ...]]":
    """The tap that the options ask for, and notes about its upstream. Raises UsageError."""
    from moontap.tapping.tap import Settings

    try:
        choice = upstream.choose(options.upstream, environment)
    except upstream.UpstreamError as error:
        raise UsageError(str(error)) from None
    _check_loop(choice.upstream.origin, options.port)
    if options.dir:
        _check_directory(options.dir)
    if options.upstream_ca is not None:
        _check_ca(options.upstream_ca)
    made = Settings(
        upstream=choice.upstream,
        rewrite=options.rewrite,
        id_style=options.id_style,
        directory=options.dir,
        rules=options.rules,
        guard=options.guard,
        upstream_ca=options.upstream_ca,
        port=options.port,
    )
    return made, choice.notes


def masker(rules: str | None) -> Callable[[str], str]:
    """What takes secrets out of a line, by the rules file too. Raises UsageError for a bad one."""
    from moontap.redact.flow import Redactor
    from moontap.rules import RulesError, load_rules

    try:
        return Redactor(load_rules(rules)).mask_text
    except RulesError as error:
        raise UsageError(f"--rules: {error}") from None


def _check_loop(origin: str, port: int) -> None:
    """A shell keeps what `moontap proxy` had it export; the next tap would ask itself."""
    parts = urlsplit(origin)
    if port and parts.port == port and parts.hostname in upstream.LOOPBACK:
        raise UsageError(
            f"the upstream {origin} would be this tap itself: unset the *_BASE_URL that names it, "
            "or give --upstream URL"
        )


def _check_directory(name: str) -> None:
    """Captures are written with the first request, when an agent has the screen."""
    try:
        path = Path(name).expanduser().absolute()
    except RuntimeError:  # ~nobody; the addon's option says so
        return
    missing = [one for one in (path, *path.parents) if not os.path.lexists(one)]
    made: list[Path] = []
    try:
        for one in reversed(missing):
            one.mkdir(mode=0o700)
            made.append(one)
        if path.is_dir() and not os.access(path, os.W_OK | os.X_OK):
            raise UsageError(f"--dir: {path} cannot be written")
    except OSError as error:
        reason = os.strerror(error.errno or 0)
        raise UsageError(f"--dir: {path} cannot be made: {reason}") from None
    finally:
        for one in reversed(made):  # a run without requests leaves no folder
            with suppress(OSError):
                one.rmdir()


def _check_ca(path: str) -> None:
    """mitmproxy would say so only with the first request, and then as a failed connection."""
    import ssl

    try:
        ssl.create_default_context(cafile=path)
    except ssl.SSLError:
        raise UsageError(f"--upstream-ca: {path} holds no PEM certificate") from None
    except OSError as error:
        raise UsageError(f"--upstream-ca: {path}: {os.strerror(error.errno or 0)}") from None


def port_number(text: str) -> int:
    """An argparse type: a TCP port, 0 among them."""
    if not (text.isascii() and text.isdigit() and int(text) <= 65535):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: 0 to 65535")
    return int(text)


def shown(path: Path) -> str:
    """A path for a person: relative where that is shorter, quoted for a shell.

    One that begins with a dash would be an option of whatever command it is pasted into.
    """
    path, cwd = path.absolute(), Path.cwd()
    name = str(path.relative_to(cwd) if path.is_relative_to(cwd) else path)
    return shlex.quote(f"./{name}" if name.startswith("-") else name)

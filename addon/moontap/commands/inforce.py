"""The rules that a command judges saved flows by: those given, else those of the run itself.

Paths and --rules in; rules and a line for people out. It reads the rules file and `run.json`.
"""

from collections.abc import Iterable
from pathlib import Path

from moontap.capture import runfile
from moontap.commands import UsageError
from moontap.commands.options import shown
from moontap.rules import Rules, RulesError, load_rules

_REMEDY = "results may differ from the run's; --rules FILE names them"


def rules_for(paths: Iterable[Path | str], given: str | None) -> tuple[Rules, str | None]:
    """The rules in force for files or capture folders, and a note where a person should know.

    given: what --rules says; it wins, with no note. Raises UsageError where that cannot be read.
    What a `run.json` names is a help only: where it cannot be used the defaults hold, and the note
    says so.
    """
    if given:
        try:
            return load_rules(given), None
        except RulesError as error:
            raise UsageError(f"--rules: {error}") from None
    found = _named(paths)
    if not any(found):
        return Rules(), None
    if len(found) > 1:
        names = ", ".join(shown(one.path) if one else "none" for one in found)
        return Rules(), f"rules: the runs had different ones ({names}), none is used; {_REMEDY}"
    (file,) = found
    assert file
    return _of_run(file)


def file_for(paths: Iterable[Path | str], given: str | None) -> str | None:
    """The file that `rules_for` takes its rules from, for what reads it by itself; None: none."""
    if given:
        return given
    found = _named(paths)
    file = found[0] if len(found) == 1 else None
    if file is None or not file.path.is_file():
        return None
    try:
        load_rules(str(file.path))
    except RulesError:
        return None
    return str(file.path)


def _named(paths: Iterable[Path | str]) -> list[runfile.RulesFile | None]:
    """What the runs' `run.json` name, each once."""
    folders = dict.fromkeys(path if path.is_dir() else path.parent for path in map(Path, paths))
    return list(dict.fromkeys(runfile.rules_file(runfile.read(folder)) for folder in folders))


def _of_run(file: runfile.RulesFile) -> tuple[Rules, str]:
    name = shown(file.path)
    if not file.path.is_file():
        return Rules(), f"rules: the run had {name}, which is not here: {_REMEDY}"
    try:
        rules = load_rules(str(file.path))
    except RulesError as error:
        return Rules(), f"rules: the run had {name}, which cannot be used ({error}): {_REMEDY}"
    if file.is_changed:
        return rules, f"rules: {name}, which has changed since the run"
    return rules, f"rules: {name}, as in the run"

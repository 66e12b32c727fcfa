"""Whether arguments match the JSON Schema that a tool declares.

A schema and a value in, what does not match out, in words. Pure: a schema is somebody else's text,
so it may fetch nothing, and its patterns may not run away.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NoReturn

import jsonschema_rs

from moontap import canonical

_MOST = 8  # mismatches that are looked at
_LARGE = 256 * 1024  # bytes of a schema; one that is larger is not compiled
_PATTERNS = jsonschema_rs.FancyRegexOptions(
    backtrack_limit=20_000, size_limit=1 << 20, dfa_size_limit=1 << 20
)
_KINDS = jsonschema_rs.ValidationErrorKind
# The engine gave up: that says nothing about the value.
_GIVEN_UP = (_KINDS.BacktrackLimitExceeded, _KINDS.RegexEngineFailure, _KINDS.Referencing)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """path: into the value, `$` for all of it. keyword: of the schema. says: what is wrong, in a
    few words. null: it is a `null` in place of a member that may be left out."""

    path: str
    keyword: str
    says: str
    null: bool = False


@dataclass(slots=True)
class Schema:
    """What a tool takes. why: once `check` was asked, why the schema itself cannot be used."""

    raw: Any
    why: str | None = None
    _validator: Any = None
    _made: bool = False

    @property
    def required(self) -> tuple[str, ...]:
        """The members that must be there."""
        names = self.raw.get("required")
        return tuple(n for n in names if isinstance(n, str)) if isinstance(names, list) else ()

    def check(self, value: Any) -> list[Mismatch]:
        """What of a value does not match; nothing where the schema cannot be used."""
        if not self._made:
            self._made = True
            self._validator, self.why = _compiled(self.raw)
        if self._validator is None:
            return []
        try:
            errors = list(islice(self._validator.iter_errors(value), _MOST))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of Rust is no Exception
            self._validator, self.why = None, _line(error)
            return []
        return [_mismatch(error, self.required) for error in errors if _says_something(error)]


def _compiled(raw: Any) -> tuple[Any, str | None]:
    if len(canonical.encode(raw)) > _LARGE:
        return None, f"it takes more than {_LARGE // 1024} KB"
    try:
        # The draft is the one that `$schema` names, else 2020-12.
        made = jsonschema_rs.validator_for(raw, retriever=_refuse, pattern_options=_PATTERNS)
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # as above
        return None, _line(error)
    return made, None


def _refuse(uri: str) -> NoReturn:
    raise ValueError("nothing is fetched")


def _line(error: BaseException) -> str:
    return (getattr(error, "message", None) or str(error)).partition("\n")[0][:200]


def _says_something(error: jsonschema_rs.ValidationError) -> bool:
    match error.kind:
        case _KINDS.AnyOf(context=branches) | _KINDS.OneOfNotValid(context=branches):
            return all(_says_something(one) for branch in branches for one in branch)
    return not isinstance(error.kind, _GIVEN_UP)


def _mismatch(error: jsonschema_rs.ValidationError, required: Sequence[str]) -> Mismatch:
    at = error.instance_path
    where = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in at)
    optional = len(at) == 1 and at[0] not in required
    null = optional and error.instance is None
    return Mismatch(f"${where}", error.kind.name, _says(error, where[1:] or "it"), null)


def _says(error: jsonschema_rs.ValidationError, where: str) -> str:
    """Without the value: it may be long, and it stands in the evidence."""
    match error.kind:
        case _KINDS.Required(property=name):
            return f"`{name}` is missing" + ("" if where == "it" else f" in `{where}`")
        case _KINDS.Type(types=types):
            return f"`{where}` is {_kind(error.instance)}, not {' or '.join(types)}"
        case (
            _KINDS.AdditionalProperties(unexpected=names)
            | _KINDS.UnevaluatedProperties(unexpected=names)
        ):
            return " and ".join(f"`{name}`" for name in names[:4]) + " is not among its members"
        case _KINDS.Enum(options=options):
            shown = ", ".join(canonical.encode(one).decode() for one in options[:6])
            return f"`{where}` is none of {shown}" + (", …" if len(options) > 6 else "")
    return f"`{where}` does not match `{error.kind.name}`"


def _kind(value: Any) -> str:
    names = {bool: "a boolean", str: "a string", int: "a number", float: "a number"}
    names |= {list: "an array", dict: "an object", type(None): "null"}
    return names.get(type(value), "of another type")

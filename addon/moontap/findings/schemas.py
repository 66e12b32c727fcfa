"""Whether arguments match the JSON Schema that a tool declares.

A schema and a value in, what does not match out, in words. Pure: a schema is somebody else's text,
so it may fetch nothing, and its patterns may not run away.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, NamedTuple, NoReturn

import jsonschema_rs

from moontap import canonical
from moontap.findings.effort import Allowance, Effort, TooMuchError
from moontap.report.text import short

_MOST = 8  # mismatches that are looked at
_LARGE = 256 * 1024  # bytes of a schema; one that is larger is not compiled
_LITTLE = 20_000  # evaluations that need not be counted one by one
_COPIED = 200_000  # parts of values, or kilobytes, that errors may hold copies of
_MANIFOLD = (b'ef":', b'"unevaluated', b'"pattern')  # more than once for a part, or for long
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


class Verdict(NamedTuple):
    """found: what does not match. why: why it was not looked at; None where it was. sound: the
    schema itself is good, and only this value too much work."""

    found: Sequence[Mismatch] = ()
    why: str | None = None
    sound: bool = True


@dataclass(slots=True)
class Schema:
    """What a tool takes."""

    raw: Any
    _why: str | None = None
    _validator: Any = None
    _made: bool = False
    _is_simple: bool = False
    _has_patterns: bool = True
    _parts: int = 0
    _effort: Effort | None = None

    @property
    def required(self) -> tuple[str, ...]:
        """The members that must be there."""
        names = self.raw.get("required")
        return tuple(n for n in names if isinstance(n, str)) if isinstance(names, list) else ()

    def check(self, value: Any, allowance: Allowance) -> Verdict:
        """What of a value does not match. allowance: goes down."""
        try:
            if not self._made:
                self._made = True
                self._make()
            if self._validator is None:
                return Verdict(why=self._why, sound=False)
            return self._checked(value, allowance)
        except TooMuchError as error:
            return Verdict(why=str(error))
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # a panic of Rust is no Exception
            self._validator, self._why = None, _line(error)
            return Verdict(why=self._why, sound=False)

    def _checked(self, value: Any, allowance: Allowance) -> Verdict:
        work = self._bound(value)
        if work is None or work > min(_LITTLE, allowance.evaluations):
            work = self._work(value, allowance)
        allowance.evaluations -= work
        if self._validator.is_valid(value):
            return Verdict()
        if work > allowance.described:
            work = self._work(value, allowance)
        # Each error holds a copy of what it is about.
        if work > allowance.described or work * _size(value, _COPIED) > _COPIED:
            # An engine that gave up a pattern says of a good value, too, that it does not match.
            return Verdict() if self._has_patterns else Verdict([_SOMEWHERE])
        allowance.described -= work
        errors = list(islice(self._validator.iter_errors(value), _MOST))
        required = self.required
        return Verdict([_mismatch(one, required) for one in errors if _says_something(one)])

    def _make(self) -> None:
        text = canonical.encode(self.raw)
        self._parts = len(text) // 3  # the shortest part is `{},`
        self._is_simple = not any(mark in text for mark in _MANIFOLD)
        self._has_patterns = b'"pattern' in text
        if len(text) > _LARGE:
            self._why = f"it takes more than {_LARGE // 1024} KB"
            return
        if not self._is_simple:
            self._effort = Effort(self.raw)
            try:
                self._effort.to_compile()
            except TooMuchError as error:
                self._why = str(error)
                return
        self._validator, self._why = _compiled(self.raw)

    def _bound(self, value: Any) -> int | None:
        """More than it can be, told at once, where nothing is evaluated twice for one value."""
        if not self._is_simple:
            return None
        return self._parts * _size(value, _LITTLE)

    def _work(self, value: Any, allowance: Allowance) -> int:
        if self._effort is None:
            self._effort = Effort(self.raw)
        return self._effort.of(value, allowance)


def _size(value: Any, most: int) -> int:
    """The parts of a value, each kilobyte of text one more; not counted any further than `most`."""
    size, left = 0, [value]
    while left and size <= most:
        one = left.pop()
        size += 1
        if isinstance(one, dict):
            left += one.values()
            size += len(one) // 8
        elif isinstance(one, list):
            left += one
        elif isinstance(one, str):
            size += len(one) // 1024
    return size


def _compiled(raw: Any) -> tuple[Any, str | None]:
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


_SOMEWHERE = Mismatch("$", "schema", "it would be too much work to say where")


def _mismatch(error: jsonschema_rs.ValidationError, required: Sequence[str]) -> Mismatch:
    at = error.instance_path
    where = "".join(f"[{one}]" if isinstance(one, int) else f".{one}" for one in at)
    optional = len(at) == 1 and at[0] not in required
    null = optional and error.instance is None
    return Mismatch(f"${where}", error.kind.name, _says(error, short(where[1:], 120) or "it"), null)


def _says(error: jsonschema_rs.ValidationError, where: str) -> str:
    """Without the value: it may be long, and it stands in the evidence."""
    match error.kind:
        case _KINDS.Required(property=name):
            return f"`{short(name, 48)}` is missing" + ("" if where == "it" else f" in `{where}`")
        case _KINDS.Type(types=types):
            return f"`{where}` is {_kind(error.instance)}, not {' or '.join(types)}"
        case (
            _KINDS.AdditionalProperties(unexpected=names)
            | _KINDS.UnevaluatedProperties(unexpected=names)
        ):
            return (
                " and ".join(f"`{short(name, 48)}`" for name in names[:4])
                + " is not among its members"
            )
        case _KINDS.Enum(options=options):
            shown = ", ".join(short(_json(one), 48) for one in options[:6])
            return f"`{where}` is none of {shown}" + (", …" if len(options) > 6 else "")
    return f"`{where}` does not match `{error.kind.name}`"


def _json(value: Any) -> str:
    return canonical.encode(value).decode("utf-8", "replace")


def _kind(value: Any) -> str:
    names = {bool: "a boolean", str: "a string", int: "a number", float: "a number"}
    names |= {list: "an array", dict: "an object", type(None): "null"}
    return names.get(type(value), "of another type")

"""Parameters of an algorithm: frozen dataclasses whose annotations define the allowed values.

The annotations are those of `annotated_types`. The same class is a section of the specification and the
argument ``parameters`` of a method. The specification is validated against the annotations, and the
constructor of the class checks them too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields
from math import isfinite
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from annotated_types import Ge, Gt, Le, Lt, MultipleOf
from microguard.sdc.errors import InvalidParameter


@dataclass(frozen=True)
class Variables:
    """Properties of the variables, taken from the specification, that a method uses.

    Attributes
    ----------
    kinds : mapping of quasi-identifier to its kind
    roles : mapping of variable to its role, for all variables of the file
    published : tuple of str
        Columns of the release.
    folders : str or None
        Variable whose categories are the folders of the release.
    """

    kinds: Mapping[str, str]
    roles: Mapping[str, str] = field(default_factory=dict)
    published: tuple[str, ...] = ()
    folders: str | None = None

    def with_role(self, role: str) -> tuple[str, ...]:
        """Return the variables that have a role."""
        return tuple(name for name, each in self.roles.items() if each == role)


@dataclass(frozen=True)
class Parameters:
    """Parameters of an algorithm; the defaults are those of its source.

    Raises
    ------
    InvalidParameter
        If a value does not fit its annotation; `variable` names the parameter.
    """

    def __post_init__(self) -> None:
        hints = get_type_hints(type(self), include_extras=True)
        for each in fields(self):
            value = getattr(self, each.name)
            if not _fits(hints[each.name], value):
                expected = " or ".join(_described(hints[each.name]))
                raise InvalidParameter(
                    f"{each.name}: expected {expected}, found {value!r}", variable=each.name
                )

    def conflict(self, algorithm: str, effort: str, nominal: bool) -> tuple[str, str] | None:
        """Return a key that this algorithm does not support and its allowed values; None if all keys are
        supported.
        """
        return None

    def among(self, variables: Collection[str]) -> Parameters:
        """Return the parameters restricted to the variables that the records have."""
        return self

    def for_tables(self, variables: Variables) -> Parameters:
        """Return the parameters with every variable name written out, for a table whose records are protected
        first.
        """
        return self

    def unfit(self, variables: Variables) -> Iterator[tuple[str, object, str]]:
        """Return the key whose value does not fit the variables, the value (None if the key is missing) and
        the allowed values.

        The key is the name of a parameter, or "" for the method itself.
        """
        return iter(())


def _fits(hint: Any, value: Any) -> bool:
    """Return whether a value is of a type, and within its limits."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _fits(parts[0], value) and all(_within(limit, value) for limit in parts[1:])
    if origin in (Union, UnionType):
        return any(_fits(part, value) for part in parts)
    if origin is Literal:
        return value in parts
    if origin is tuple:
        if not isinstance(value, tuple | list):
            return False
        kinds = parts[:1] * len(value) if parts[-1] is Ellipsis else parts
        return len(kinds) == len(value) and all(map(_fits, kinds, value))
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if hint is float:
        return isinstance(value, Real) and not isinstance(value, bool) and isfinite(value)
    return isinstance(value, origin or hint)


def _within(limit: Any, value: Any) -> bool:
    match limit:
        case Ge(ge):
            return bool(value >= ge)
        case Gt(gt):
            return bool(value > gt)
        case Le(le):
            return bool(value <= le)
        case Lt(lt):
            return bool(value < lt)
        case MultipleOf(multiple_of):
            return bool(value % multiple_of == 0)
    return True


def _described(hint: Any) -> Iterator[str]:
    """Describe the values that a type and its limits allow."""
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Annotated:
        (kind,) = _described(parts[0])
        yield ", ".join([kind, *(text for limit in parts[1:] if (text := _limit(limit)))])
    elif origin in (Union, UnionType):
        for part in parts:
            yield from _described(part)
    elif origin is Literal:
        yield from map(repr, parts)
    elif origin is tuple:
        if parts[-1] is Ellipsis:
            yield f"a tuple, each {' or '.join(_described(parts[0]))}"
        else:
            yield f"a tuple of {', '.join(' or '.join(_described(part)) for part in parts)}"
    else:
        kinds = {int: "a whole number", float: "a finite number", NoneType: "None"}
        yield kinds.get(hint) or str(getattr(origin or hint, "__name__", hint))


def _limit(limit: Any) -> str:
    match limit:
        case Ge(ge):
            return f"at least {ge}"
        case Gt(gt):
            return f"above {gt}"
        case Le(le):
            return f"at most {le}"
        case Lt(lt):
            return f"below {lt}"
        case MultipleOf(multiple_of):
            return f"a multiple of {multiple_of}"
    return ""

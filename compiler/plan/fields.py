"""The base of the classes of a plan's types, which behave like frozen dataclasses.

Every start of the program creates more than a hundred of these classes. `dataclasses` compiles four functions for each,
which takes a tenth of a second in total. Here all classes share the functions, which loop over the names of the fields.
For a type checker, each subclass is a frozen dataclass.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

if TYPE_CHECKING:
    from typing import NoReturn

    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_options: bool) -> Any:
        """The decorator for type checkers only."""
        return lambda transformed: transformed


__all__ = ["Fields", "names_of", "replaced", "values_of"]


@dataclass_transform(frozen_default=True)
class Fields:
    """Holds one value for each annotation of its class, in that order; a class attribute is a field's default.

    Arguments are positional or named. Two values are equal if they have the same class and equal fields. Fields are not
    inherited.

    Raises:
        TypeError: a field is missing, given twice or unknown.
        AttributeError: the caller sets or deletes a field of an existing value.
    """

    _fields: ClassVar[tuple[str, ...]] = ()
    _allowed: ClassVar[frozenset[str]] = frozenset()
    _required: ClassVar[frozenset[str]] = frozenset()

    def __init_subclass__(cls) -> None:
        cls._fields = tuple(cls.__annotations__)
        cls._allowed = frozenset(cls._fields)
        cls._required = cls._allowed - cls.__dict__.keys()
        cls.__match_args__ = cls._fields  # type: ignore[attr-defined, misc]

    def __init__(self, *values: Any, **named: Any) -> None:
        given = dict(zip(self._fields, values, strict=False), **named)
        is_complete = len(given) == len(values) + len(named) and self._required <= given.keys()
        if not is_complete or not self._allowed.issuperset(given):
            raise TypeError(f"{type(self).__qualname__}: {', '.join(self._wrong(values, named))}")
        self.__dict__.update(given)

    def _wrong(self, values: tuple[Any, ...], named: dict[str, Any]) -> list[str]:
        """The errors of the arguments, as sentences."""
        names = self._fields
        given = dict(zip(names, values, strict=False))
        wrong = [f"{len(values)} values for {len(names)} fields"] if len(values) > len(names) else []
        wrong += [f"{name!r} given twice" for name in named if name in given]
        wrong += [f"no field {name!r}" for name in named if name not in names]
        given |= named
        return wrong + [f"{name!r} missing" for name in names if name in self._required and name not in given]

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"{type(self).__qualname__} cannot be changed: use replaced() to get one with another {name!r}"
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__qualname__} cannot be changed: {name!r} cannot be deleted")

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._fields)
        return f"{type(self).__qualname__}({fields})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return values_of(self) == values_of(other)

    def __hash__(self) -> int:
        return hash((type(self), values_of(self)))


Kind = TypeVar("Kind", bound=Fields)


def replaced(value: Kind, **changes: Any) -> Kind:
    """A copy of the value with other contents of some fields.

    Raises:
        TypeError: there is no such field.
    """
    return type(value)(**{**vars(value), **changes})


def names_of(value: Fields) -> tuple[str, ...]:
    """The names of the fields, in order."""
    return value._fields


def values_of(value: object) -> tuple[Any, ...]:
    """The values of the fields, in order; empty for an object without fields."""
    return tuple([getattr(value, name) for name in value._fields]) if isinstance(value, Fields) else ()

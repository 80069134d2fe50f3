"""What the files of one data set agree on."""

from __future__ import annotations

from collections.abc import Sequence

from getd.errors import FactFileError
from getd.facts.relation import Roles


class RoleOrder:
    """What the files of one data set agree on: the order of a relation's roles, and the columns of its tables."""

    def __init__(self) -> None:
        self._orders: dict[tuple[str, Roles], Roles] = {}
        self._tables: dict[str, tuple[Roles, str]] = {}
        self._first: tuple[bool, str] | None = None

    def ordered(self, relation: str, roles: Sequence[str]) -> Roles:
        """The roles in the order in which this relation had them first."""
        return self._orders.setdefault((relation, tuple(sorted(roles))), tuple(roles))

    def table_roles(self, relation: str, roles: Sequence[str], path: str) -> Roles:
        """The same, for a table: there a relation has one set of roles."""
        first, where = self._tables.setdefault(relation, (tuple(roles), path))
        if sorted(first) != sorted(roles):
            missing, more = set(first) - set(roles), set(roles) - set(first)
            wrong = f"{min(missing)!r} is missing" if missing else f"{min(more)!r} is there too"
            what = f"for relation {relation!r} the columns {', '.join(first)} as in {where}"
            raise FactFileError(path, [("", f"expected {what}, but {wrong}")])
        return first

    def check_relation_column(self, present: bool, path: str) -> None:
        """All tables of a data set have a relation column, or none has."""
        first, where = self._first = self._first or (present, path)
        if first != present:
            there = "a column 'relation'" if first else "no column 'relation'"
            raise FactFileError(
                path,
                [("", f"expected {there} as in {where}, found {'one' if present else 'none'}")],
            )

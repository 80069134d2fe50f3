"""What the files of one data set must agree on."""

from collections.abc import Sequence

from getd.errors import FactFileError
from getd.facts.relation import Roles


class RoleOrder:
    """The order of each relation's roles, and the columns of its tables, over all files."""

    def __init__(self) -> None:
        self._orders: dict[tuple[str, Roles], Roles] = {}
        self._tables: dict[str, tuple[Roles, str]] = {}  # by relation: its roles, and their file
        self._first: tuple[bool, str] | None = None  # the first table: relation column, and file
        self._arrangements: dict[tuple[int, ...], int] = {}

    def ordered(self, relation: str, roles: Sequence[str]) -> Roles:
        """The roles in the order in which this relation first had them."""
        return self._orders.setdefault((relation, tuple(sorted(roles))), tuple(roles))

    def arrangement(self, order: Sequence[int]) -> int:
        """A number for the order in which a fact had its qualifiers; 0 for the canonical one."""
        if list(order) == sorted(order):
            return 0
        return self._arrangements.setdefault(tuple(order), len(self._arrangements) + 1)

    def table_roles(self, relation: str, roles: Sequence[str], path: str) -> Roles:
        """The same for a table, where a relation has only one set of roles."""
        first, first_path = self._tables.setdefault(relation, (tuple(roles), path))
        missing = set(first).difference(roles)
        added = set(roles).difference(first)
        if not missing and not added:
            return first

        problem = f"{min(missing)!r} is missing" if missing else f"{min(added)!r} is there too"
        columns = f"the columns {', '.join(first)} as in {first_path}"
        message = f"expected for relation {relation!r} {columns}, but {problem}"
        raise FactFileError(path, message)

    def check_relation_column(self, present: bool, path: str) -> None:
        """Check that all tables of a data set have a relation column, or none has."""
        self._first = self._first or (present, path)
        first, first_path = self._first
        if first != present:
            expected = "a column 'relation'" if first else "no column 'relation'"
            actual = "one" if present else "none"
            message = f"expected {expected} as in {first_path}, found {actual}"
            raise FactFileError(path, message)

"""Numbers and tables as text."""

from collections.abc import Iterable, Sequence


def listed(template: str, *columns: Iterable[object]) -> str:
    """Format each row of these columns with a template, and join them.

    >>> listed("k = {}: {:.2f}", [4, 6], [0.5, 0.25])
    'k = 4: 0.50, k = 6: 0.25'
    """
    return ", ".join(map(template.format, *columns))


def small(value: float) -> str:
    """Write three digits, or more where those would all be 0.

    >>> small(0.25), small(0.00081)
    ('0.250', '0.0008')
    """
    return format(value, ".3f" if value >= 0.001 else ".1g")


def markdown_table(header: str, rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown; the cells of its header have a bar between them."""
    columns = header.split(" | ")
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")

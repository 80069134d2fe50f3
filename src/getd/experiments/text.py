"""Numbers and tables as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def listed(template: str, items: Iterable[object], separator: str = ", ") -> str:
    """Format each item with a template, and join them; a tuple fills several fields.

    >>> listed("k = {}: {:.2f}", {4: 0.5, 6: 0.25}.items())
    'k = 4: 0.50, k = 6: 0.25'
    """
    rows = (item if isinstance(item, tuple) else (item,) for item in items)
    return separator.join(template.format(*row) for row in rows)


def small(value: float) -> str:
    """Write three digits, or more where those would all be 0.

    >>> small(0.25), small(0.00081)
    ('0.250', '0.0008')
    """
    return f"{value:.3f}" if value >= 0.001 else f"{value:.1g}"


def markdown_table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(map(_cell, line))} |" for line in lines)


def _cell(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else str(value).replace("|", "\\|")

"""``python -m tests.mutations``: try wrong lines of code, and write which test notices each."""

from __future__ import annotations

import argparse
import sys

from tests.mutations.map import make_map, read_map
from tests.mutations.table import killers, section, write, write_rows
from tests.mutations.trial import Laboratory, Mutation, Result, chosen, drawn, listed


def main() -> int:
    """Exit code 0: all that can be noticed was noticed."""
    options = _options()
    if options.map is not None:
        make_map(options.map)
        return 0

    tests = read_map()
    if tests is None:
        print(
            "no map of tests (--map makes one): only tests beside the code are tried",
            file=sys.stderr,
        )
    laboratory = Laboratory(tests, killers(), options.seconds)

    results: list[Result] = []
    if options.only:
        results = laboratory.results(chosen(options.only), options.jobs, _tell)
        write_rows(results)
    else:
        parts = []
        for title, mutations in _groups(options).items():
            of_group = laboratory.results(mutations, options.jobs, _tell)
            parts.append(section(title, of_group))
            results += of_group
        write(parts)

    left = sum(result.verdict in ("survived", "lost") for result in results)
    print(f"{left} left" if left else "none left")
    return 1 if left else 0


def _groups(options: argparse.Namespace) -> dict[str, list[Mutation]]:
    """Mutations by the title of their part of the page."""
    both = not options.listed and options.drawn is None
    number = options.drawn if options.drawn is not None else 100 if both else 0
    groups: dict[str, list[Mutation]] = {}
    if options.listed or both:
        groups["Listed"] = listed()
    if number:
        title = f"Drawn: {number} with seed {options.seed}"
        if options.since is not None:
            title += f" from the files changed since {options.since}"
        groups[title] = drawn(number, options.seed, options.since)
    return groups


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=main.__doc__)
    parser.add_argument("--listed", action="store_true", help="those of listed.toml")
    parser.add_argument("--drawn", type=int, metavar="N", help="so many drawn at random")
    parser.add_argument("--seed", type=int, default=16, help="of the draw (default: %(default)s)")
    parser.add_argument("--since", metavar="COMMIT", help="draw from files changed since alone")
    parser.add_argument("--jobs", type=int, default=1, help="how many are tried side by side")
    parser.add_argument(
        "--seconds", type=float, default=150, help="of tests that are tried at most for each"
    )
    parser.add_argument("--only", nargs="+", metavar="ID", help="these alone; writes their rows")
    parser.add_argument(
        "--map",
        nargs="*",
        metavar="FILE",
        help="run the suite once to see which test runs which line; with files, add their tests",
    )
    return parser.parse_args()


def _tell(result: Result) -> None:
    print(result.mutation.id, result.verdict, result.about.replace("\n", " "), flush=True)


if __name__ == "__main__":
    sys.exit(main())

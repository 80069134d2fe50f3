"""A fuzzer of our own: damaged files into the command line, and whether each ends in one clear
line.

Each kind of target is a module with one function, listed in :mod:`tests.fuzz.targets`:

    cases(seed: int, shared: Path, start: int = 0) -> Iterator[Case]

an endless iterator that begins at case number ``start``. Case ``i`` depends on the seed and on
``i`` alone, so any case can be made again. ``shared`` is a folder that lasts as long as the
campaign: what is costly (a trained run) is made there once, and copied from there.
"""

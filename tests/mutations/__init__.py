"""Wrong lines of code that a test must notice; ``python -m tests.mutations --help``."""

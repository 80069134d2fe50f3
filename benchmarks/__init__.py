"""Speed and memory against written-out baselines of the same run; each asserts what it times."""

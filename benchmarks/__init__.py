"""Speed and memory, measured against written-out baselines in the same run; each benchmark asserts what it times."""

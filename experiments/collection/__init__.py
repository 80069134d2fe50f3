"""Data sets that nobody tuned for, and whether a plain training beats counting on each of them."""

"""Scoring functions: one file per model, one screen each; sizes in, never a data set."""

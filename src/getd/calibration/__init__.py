"""Scores to probabilities and confidence, fitted on validation."""

"""Scores to ranks to metrics to a report."""

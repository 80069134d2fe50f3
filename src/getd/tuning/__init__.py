"""Choosing settings on validation; test is never read."""

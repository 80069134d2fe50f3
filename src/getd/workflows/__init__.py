"""Workflows that train a model and then use it."""

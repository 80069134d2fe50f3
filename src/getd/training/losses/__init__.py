"""Losses of training."""

"""Losses, batches, stopping, the loop, checkpoints: a knowledge base and settings to a run."""

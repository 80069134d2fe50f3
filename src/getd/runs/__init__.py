"""The run folder: everything that training leaves; self-contained, never pickle."""

"""The run folder: everything that training leaves and that everything later reads; self-contained, never pickle."""

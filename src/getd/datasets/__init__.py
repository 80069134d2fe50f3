"""Data sets by name or path: the catalogue, downloads, the demo, loading and converting."""

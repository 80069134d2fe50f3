"""File formats: bytes of a file to named facts, and back."""

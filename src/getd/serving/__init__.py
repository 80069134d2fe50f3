"""A run as an HTTP service, with a page for people."""

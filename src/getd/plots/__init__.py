"""Pictures: the only room that imports matplotlib."""

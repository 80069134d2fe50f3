"""Results as measured, and how they are written down."""

"""The paper, row by row: ``rows/paper`` has its settings and figures, ``rows/best`` has ours."""

"""The paper, row by row: ``rows/paper`` holds its settings and published values, ``rows/best`` ours."""

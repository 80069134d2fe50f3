"""Files and the machine: atomic writes, lines of text, deadlines, the environment."""

"""The command line: a command reads its flags, calls one public function, prints the result."""

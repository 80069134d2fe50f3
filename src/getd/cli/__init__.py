"""One command, one public function: a command reads its flags, calls the function, shows what it returns."""

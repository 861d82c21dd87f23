"""One verb per file. The only place where an error becomes an exit code."""

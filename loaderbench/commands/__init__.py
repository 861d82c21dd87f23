"""The command line: one module per command. Errors become exit codes only in `app`."""

"""One module per command of the command line; each has `main(arguments) -> exit code`."""

"""Commands: `main(arguments) -> exit code` each. `runs`, `sweeps` and other rooms do the work.

A command reads its arguments, calls the other rooms and prints. Nothing imports a command but
`cli.py`; `arguments` is what they share, `lists` has those that only list what is shipped, and
`files` those that only write a file.
"""

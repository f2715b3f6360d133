"""How fast this machine trains, against plain PyTorch, measured in one process.

Here belongs what only measures speed. Nothing else imports it but the command `bench` in
`commands`.
"""

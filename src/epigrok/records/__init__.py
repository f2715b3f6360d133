"""One run directory on disk: its files, who works on it, where it stands. No torch.

Here belongs what can be said of a run from its files alone. What computes something new lives in
`runs`; what reads many runs as one lives in `tables`.
"""

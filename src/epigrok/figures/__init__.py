"""Figures: tables go in, a matplotlib figure comes out. One file per figure, no torch.

Nothing is computed here but what a drawing needs: queries live in `tables`, the theory's numbers in
`theory`.
"""

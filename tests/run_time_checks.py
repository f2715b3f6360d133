"""The checker that `conftest.py` hooks into the package."""

from beartype import BeartypeConf, beartype

# An int is a fine float (PEP 484's numeric tower), as mypy too says.
checked = beartype(conf=BeartypeConf(is_pep484_tower=True))

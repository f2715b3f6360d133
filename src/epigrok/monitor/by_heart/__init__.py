"""Were rows learnt by heart? Whether watched answers follow from seen ones, and these from others.

The rule that asks is in `monitor/states.py`; networks come from `posteriors`.
"""

from epigrok.monitor.by_heart.first_features import features_from_json
from epigrok.monitor.by_heart.predictability import Predictability

__all__ = ["Predictability", "features_from_json"]

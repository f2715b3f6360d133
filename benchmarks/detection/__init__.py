"""The detection benchmark: which statistic tells a network that has generalised from one that has
memorised, on runs whose truth is known?"""

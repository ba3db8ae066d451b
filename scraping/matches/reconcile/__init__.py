"""One match state out of the states of several sources. Pure functions over plain JSON values, without Django.

`choosing` picks the source of each field, `disagreement` finds conflicts, `states` compares and orients states.
"""

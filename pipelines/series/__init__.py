"""Releases that follow each other: a class is born whole, never changes, leaves and comes back whole.

A night in the order of the data: `unit_key` names the units, `night` lays tonight's input beside the state,
`pool` chooses who is clustered, the methods protect them, `birth` makes classes of them and the next state,
`membership` writes down for the joint audit who is in which class, `generations` seals it all. `append` is
the simpler kind, where every night brings new units only. `publication.source_fingerprints` finds the
same source under another name, and refuses it.
"""

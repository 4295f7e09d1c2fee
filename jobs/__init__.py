"""Verbs a person or a scheduler calls: `verbs` has one row each, and beside it lies a spark-submit script."""

"""Recoding: publish each variable at one level of its hierarchy, so that records are k-anonymous."""

from microguard.sdc.recoding.lattice import Ladder, Lattice
from microguard.sdc.recoding.search import Recoding, recode

__all__ = ["Ladder", "Lattice", "Recoding", "recode"]

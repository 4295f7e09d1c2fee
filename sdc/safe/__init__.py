"""SAFE, the method of the German census of 2011 (Höhne 2015; Cost 2023, chapters 2 and 3)."""

from microguard.sdc.algorithms.safe import SafeParams
from microguard.sdc.safe.protection import SafeResult, safe

__all__ = ["SafeParams", "SafeResult", "safe"]

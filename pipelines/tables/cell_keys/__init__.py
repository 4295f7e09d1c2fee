"""Frequency tables with noise by cell keys: keys, counts, product, measures, and read-back."""

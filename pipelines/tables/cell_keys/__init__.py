"""Frequency tables with cell-key noise: keys, counts, product, measures, and read-back."""

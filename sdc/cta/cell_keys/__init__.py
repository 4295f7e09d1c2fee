"""Frequency tables with bounded, unbiased noise, the same for the same records in every table."""

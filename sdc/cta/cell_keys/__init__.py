"""Cell key method: bounded, unbiased noise that is the same in every table for cells with the same
records.
"""

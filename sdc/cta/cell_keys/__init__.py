"""The cell key method: bounded, unbiased noise that is the same for the same records in every table."""

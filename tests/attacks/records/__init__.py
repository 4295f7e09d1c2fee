"""Attack programs on published records, and what they find."""

"""Releases that follow each other: a class is published, suppressed and republished as a whole."""

"""Series of successive releases: a class is published, suppressed and republished as a whole."""

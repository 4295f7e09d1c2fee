"""Random jobs: specifications and inputs that nobody thought of."""

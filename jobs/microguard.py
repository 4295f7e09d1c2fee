"""The microguard command."""


def main() -> int:
    """Entry point."""
    return 0

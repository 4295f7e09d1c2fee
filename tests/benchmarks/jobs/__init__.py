"""Random jobs: random specifications with random inputs."""

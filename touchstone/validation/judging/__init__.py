"""What reports mean: the verdict on a fix, the tests that decide, what a fix removed, and which results are final."""

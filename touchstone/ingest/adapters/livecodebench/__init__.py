"""Adapters for LiveCodeBench: its results and generations, and the tests of its problems."""

"""Adapters for OpenHands: the output of a run, and the index of several."""

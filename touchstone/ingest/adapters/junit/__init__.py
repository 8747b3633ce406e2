"""Adapter for JUnit XML, one file per attempt: `results` reads it, `paths` takes model and attempt from its path."""

"""Where code that nobody vouches for is run: limits, backends, and the probe that picks one."""

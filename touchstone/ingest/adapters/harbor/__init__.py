"""What Harbor writes: job folders with one result per trial. `causes` says whose failure an exception is."""

"""What a run leaves behind on a bad day: killed, out of disk or memory, beside others, on damaged files."""

"""One module per tool: how its files are recognized, and what its keys mean. What they share is one folder up."""

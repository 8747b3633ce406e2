"""How sure a figure is: units, intervals, draws and paired tests. What a figure is belongs in `touchstone.metrics`."""

"""The results of a run in the formats of other tools, so that leaving is as easy as coming.

Belongs here: one module per format, each of which writes the files of one folder. How a single table is exported
belongs in `touchstone.publish.export`.
"""

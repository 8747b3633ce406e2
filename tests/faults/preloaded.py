"""Everything that a run imports, for the process that the others are forked from."""

import pipelines.launch  # noqa: F401
import touchstone.cli.main
import touchstone.cli.run_tables
import touchstone.comparison.gate
import touchstone.evaluation
import touchstone.ingest.stage
import touchstone.publish.query
import touchstone.publish.report.stage
import touchstone.publish.stage
import touchstone.publish.up_to_date
import touchstone.validation.stage  # noqa: F401

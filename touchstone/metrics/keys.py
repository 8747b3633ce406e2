"""The columns that figures are grouped by, each list named once."""

MODEL_TIER = ["model", "tier"]
PROBLEM_KEY = [*MODEL_TIER, "oid"]
ATTEMPT_KEY = [*PROBLEM_KEY, "iteration_id"]
RUN_KEY = [*MODEL_TIER, "run_id"]
SUITE_KEY = [*RUN_KEY, "suite"]

ModelTier = tuple[str, str]

"""The columns that name a row in a comparison: a model at a tier, and a case, which is one of its problems."""

MODEL_TIER = ["model", "tier"]
CASE_KEY = [*MODEL_TIER, "oid"]

ModelTier = tuple[str, str]

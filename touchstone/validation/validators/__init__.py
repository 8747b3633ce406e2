"""The programs that judge a tree, one per file, all behind `touchstone.validation.protocol.Validator`."""

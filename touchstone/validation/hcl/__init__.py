"""A static checker for one Terraform module that reports errors in Terraform's wording, without running Terraform.

`check_module` in `module` is the entry point. It follows Terraform's stages and stops where Terraform stops:

1. syntax: `parsing`, and `json_syntax` for files in JSON;
2. loading: `loading`, and duplicates in `declarations`;
3. evaluation: `evaluation`, of what `expressions` finds, with `references`, bodies of blocks in `schema`, and
   `values`.

Only errors that Terraform 1.11 also reports belong here; a check that might report more stays silent, or reports a
doubt. Running the checks in a sandbox belongs in `worker` and `touchstone.validation.validators.hcl`.
"""

from touchstone.validation.hcl.module import check_module

__all__ = ["check_module"]

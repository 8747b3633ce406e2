"""A static checker for one Terraform module that reports errors in Terraform's wording, without running Terraform.

`check_module` is the entry point. It follows Terraform's stages and stops where Terraform stops:

1. syntax: `limits`, `syntax`;
2. loading: `blocks`, `body_schema`, `conditions`, `constants`, `type_constraints`, `defaults`, `duplicates`;
3. evaluation: `evaluation`, `scopes`, `expressions`, `references`, `functions`, `cycles`, provider schemas in `schema`
   and `conformance`, and values in `types`, `values` and `value_checks`.

Only errors that Terraform 1.11 also reports belong here; a check that might report more stays silent, or reports a
doubt. Running the checks in a sandbox belongs in `worker` and `touchstone.validation.validators.hcl`.
"""

from touchstone.validation.hcl.module import ModuleFindings, check_module

__all__ = ["ModuleFindings", "check_module"]

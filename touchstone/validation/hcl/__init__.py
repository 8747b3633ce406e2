"""Judges one Terraform module without Terraform, in Terraform's own words.

`check_module` is the door. It goes Terraform's way and stops where Terraform stops: syntax (`limits`, `syntax`), then
what loading refuses (`blocks`, `shapes`, `conditions`, `constants`, `type_constraints`, `defaults`, `duplicates`), then
what evaluating does (`evaluation`, `places`, `expressions`, `references`, `functions`, `cycles`) with the schemas of
providers (`schema`, `conformance`). Each complaint is one that Terraform 1.11 makes too; where that is not certain, it
stays silent.
"""

from touchstone.validation.hcl.module import ModuleFindings, check_module

__all__ = ["ModuleFindings", "check_module"]

"""The static checker on changes that it was not developed with: it refuses no valid module, and passes few others."""

import pytest

from tests.validation.hcl.mutants import MODULES, recorded
from touchstone.validation.hcl import check_module
from touchstone.validation.hcl.module import UnreadableError
from touchstone.validation.judging.verdicts import new_doubts
from touchstone.vocabulary import STATIC_PASSES

pytestmark = pytest.mark.services


def verdict(module: str, files: dict[str, bytes]) -> bool | None:
    """Whether the checker accepts a changed module; None if it does not decide."""
    original = MODULES[module].encode()
    try:
        found = check_module(files, None)
    except UnreadableError:
        return None
    doubts = new_doubts(found, check_module({"main.tf": original}, None), [original])
    return False if found.diagnostics else None if doubts else True


def test_no_valid_module_is_refused_and_the_printed_figure_is_the_measured_one() -> None:
    verdicts = {mutant: verdict(mutant.module, mutant.files) for mutant in recorded()}
    valid = [mutant for mutant, accepted in recorded().items() if accepted]
    assert [mutant for mutant in valid if verdicts[mutant] is False] == []
    assert sum(verdicts[mutant] is None for mutant in valid) <= len(valid) / 8
    refused = recorded().keys() - valid
    assert (sum(verdicts[mutant] is True for mutant in refused), len(refused)) == STATIC_PASSES

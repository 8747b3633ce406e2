"""Our quantiles against scipy's."""

import pytest
from scipy import special

from touchstone.inference.quantiles import t_critical, z_critical


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.9, 0.95, 0.99, 0.999])
def test_agrees_with_scipy(confidence: float) -> None:
    upper = (1 + confidence) / 2
    assert z_critical(confidence) == pytest.approx(special.ndtri(upper), rel=1e-12)
    for degrees in [*range(1, 60), 99, 100, 999, 1000, 1001, 5000, 10**6]:
        assert t_critical(degrees, confidence) == pytest.approx(special.stdtrit(degrees, upper), rel=1e-11)


@pytest.mark.parametrize("confidence", [0.1, 0.5, 0.9, 0.95, 0.99, 0.999, 1 - 0.05 / 8911])
def test_degrees_of_freedom_may_be_fractional(confidence: float) -> None:
    for degrees in (1.0001, 1.2, 1.5, 2.3, 3.33, 9.99, 17.3, 99.1, 333.3, 999.9, 1000.5, 5000.2):
        expected = special.stdtrit(degrees, (1 + confidence) / 2)
        assert t_critical(degrees, confidence) == pytest.approx(expected, rel=1e-9), degrees

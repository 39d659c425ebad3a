"""Random programs that change between calls; many kinds of change were not seen once."""

import pytest
from numpy_programs.changing_programs import judged


@pytest.mark.parametrize("seed", range(40))
def test_derivatives_of_changing_programs(seed):
    assert judged(seed) is None

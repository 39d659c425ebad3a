"""Random programs written for NumPy and SciPy; each found a fault once, or may find the next."""

import pytest
from numpy_programs.random_programs import judged, program_of, text_of


@pytest.mark.counts  # they write to arrays that a call has made, which must not be shared
@pytest.mark.parametrize("seed", range(60))
def test_derivatives_of_random_programs(seed):
    text = text_of(seed)
    assert judged(program_of(text)) is None, text

"""NumPy's array classes with rules of their own, made from traced values, are refused with an alternative."""

import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import as_written, grad, jvp, vmap
from funcgrad.errors import FuncgradError, InputError

MATRIX, MASK, RECORDS, TEXT = r"A @ B for A \* B", r"where\(mask, fill, x\)", "dictionary of arrays", "Texts have no"


class Units(np.ndarray):
    """A user's array class."""


MADE = {
    "matrix": (MATRIX, lambda x: np.matrix(x) * 2),
    "asmatrix": (MATRIX, lambda x: np.asmatrix(x)),
    "bmat": (MATRIX, lambda x: np.bmat([[x, x]])),
    "matrix times x": (MATRIX, lambda x: np.matrix(np.eye(2)) * x),
    "view of matrix": (MATRIX, lambda x: x.view(np.matrix)),
    "ma.array": (MASK, lambda x: np.ma.array(x)),
    "MaskedArray": (MASK, lambda x: np.ma.MaskedArray(x, mask=False)),
    "ma.masked_where": (MASK, lambda x: np.ma.masked_where(np.eye(2) > 0, x)),
    "ma.sum": (MASK, lambda x: np.ma.sum(x)),
    "ma.array times x": (MASK, lambda x: np.ma.array(np.eye(2)) * x),
    "view of MaskedArray": (MASK, lambda x: x.view(np.ma.MaskedArray)),
    "written to ma": (MASK, lambda x: np.ma.zeros((2, 2)).__setitem__(0, x[0])),
    "rec.array": (RECORDS, lambda x: np.rec.array(x)),
    "rec.fromarrays": (RECORDS, lambda x: np.rec.fromarrays([x, x])),
    "view of recarray": (RECORDS, lambda x: x.view(np.recarray)),
    "char.array": (TEXT, lambda x: np.char.array(x)),
    "char.asarray": (TEXT, lambda x: np.char.asarray(x)),
    "view of memmap": ("write the result of", lambda x: x.view(np.memmap)),
    "own class": (r"register_pytree_node\(cls", lambda x: x.view(Units)),
}
RUNS = {
    "grad": lambda f, x: grad(lambda x: fnp.sum(f(x)))(x),
    "jvp": lambda f, x: jvp(f, (x,), (x,)),
    "vmap": lambda f, x: vmap(f)(np.stack([x, x])),
}


@pytest.mark.usefixtures("written")
@pytest.mark.parametrize("run", RUNS)
@pytest.mark.parametrize("name", MADE)
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning", "ignore::DeprecationWarning")
def test_error_names_alternative(name, run):
    says, make = MADE[name]
    with pytest.raises(FuncgradError, match=says):
        RUNS[run](make, np.eye(2) + 1.0)


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_error_names_class():
    says = r"^matrix\(x\): .* got float64\[2, 2\], at .*\. Use arrays of two axes"
    with as_written(), pytest.raises(InputError, match=says):
        grad(lambda x: np.matrix(x).sum())(np.eye(2))
    np.testing.assert_array_equal(grad(lambda x: x.view(np.ndarray).sum())(np.eye(2)), np.ones((2, 2)))

"""Completeness: every operation has rows, every row has an existing operation, every gap has a reason."""

import importlib
import inspect
import pkgutil
import re
from types import ModuleType

import numpy as np
import pytest
from helpers import identical
from operations import cases
from operations.cases import MACHINERY, row_modules
from operations.names import HOMES, OURS, named

import funcgrad.numpy as fnp
import funcgrad.primitives
from funcgrad import core, grad, jvp, vjp, vmap

ROWS = cases.rows()

#: Functions of shapes, dtypes and numbers, without a derivative: compared with NumPy below.
M = np.arange(6.0).reshape(2, 3)
STATIC = {
    "array2string": (M.T,),
    "array_repr": (M.T,),
    "array_str": (M.T,),
    "base_repr": (5, 3),
    "binary_repr": (-5, 8),
    "broadcast_shapes": ((2, 1), (3,)),
    "can_cast": (M, np.float32),
    "common_type": (M, M.T + 1j),
    "diag_indices": (3, 2),
    "diag_indices_from": (M[:, :2],),
    "einsum_path": ("ij,jk,kl->il", M, M.T, M),
    "empty": ((2, 0), np.float32),
    "empty_like": (np.ones((0, 2), int),),
    "eye": (2, 3, 1, np.float32),
    "format_float_positional": (0.5,),
    "format_float_scientific": (0.5,),
    "from_dlpack": (M.T,),
    "frombuffer": (b"\1\2", np.uint8),
    "get_printoptions": (),
    "getbufsize": (),
    "geterr": (),
    "geterrcall": (),
    "identity": (3,),
    "indices": ((2, 3),),
    "iscomplexobj": (M + 1j,),
    "isdtype": (np.dtype(float), "real floating"),
    "isfortran": (M,),
    "isnat": (np.datetime64("NaT", "D"),),
    "isrealobj": (M,),
    "isscalar": (1.5,),
    "issubdtype": (np.float32, np.floating),
    "iterable": (M,),
    "mask_indices": (3, np.triu),
    "may_share_memory": (M, np.ones(2)),
    "min_scalar_type": (M,),
    "mintypecode": ("fdF",),
    "ndim": (M,),
    "ones": ((2, 3), int),
    "promote_types": (np.float32, np.int64),
    "result_type": (M, np.float32(1), 1j),
    "shape": (M,),
    "shares_memory": (M, np.ones(2)),
    "size": (M, 1),
    "tri": (2, 3, 1),
    "tril_indices": (3, 1),
    "tril_indices_from": (M, -1),
    "triu_indices": (3, 1),
    "triu_indices_from": (M, -1),
    "typename": ("d",),
    "zeros": ((2, 3), complex),
}
#: Functions of ``STATIC`` that take an array, and so must accept a tracer.
LOOKS = [name for name, args in STATIC.items() if any(arg is M for arg in args)]
#: Other public names of funcgrad.numpy without a row, and the reasons.
NO_ROW: dict[str, str] = {
    "__array_namespace_info__": "tells about the namespace: test_array_api.py has it",
    "finfo": "NumPy's own, of arrays too: test_array_api.py has it",
    "iinfo": "NumPy's own, of arrays too: test_array_api.py has it",
    "lib.stride_tricks.as_strided": "goes by the memory, which a row's batches turn around: test_emath.py has it",
    "printoptions": "NumPy's own, for its settings",
    "set_printoptions": "NumPy's own, for its settings",
    **dict.fromkeys(
        [f"scipy.integrate.{name}" for name in ("cubature", "dblquad", "nquad", "tplquad")],
        "adaptive, of doubles, and slow where every rule is tried: test_quadrature.py has it",
    ),
    "scipy.integrate.solve_bvp": "functions are all that it takes: test_solve_bvp.py has it",
    "setbufsize": "NumPy's own, for its settings",
    "seterr": "NumPy's own, for its settings",
    "seterrcall": "NumPy's own, for its settings",
}
#: Primitives that no row reaches, and the reasons.
NO_USE: dict[str, str] = {
    "all_gather": "runs inside a vmap with an axis name only: test_transforms.py has it",
    "complex_of": "complex(x, y) and writes to z.imag: test_conversions.py",
    **dict.fromkeys(
        ("any_pair", "column_phases", "held_fixed", "vectors_moved"),
        "second derivatives of eigenvectors: test_linalg_decompositions.py",
    ),
    "nan_replaced": "nan_to_num of plain values: tracers take another way",
    **dict.fromkeys(
        (
            *("bivariate_upper", "cosine_ppf", "kolmogc", "kolmogci", "smirnovc", "smirnovci"),
            *("landau_cdf", "landau_density", "landau_isf", "landau_ppf", "landau_sf"),
            *("ncf_isf", "ncf_sf", "nct_isf", "nct_ppf", "nct_sf", "ncx2_isf", "ncx2_sf", "scaled_exp1"),
        ),
        "SciPy's distributions call it, which has no public name: test_scipy_distributions.py",
    ),
}


def public(module, prefix=""):
    """Return the public functions of a namespace, by name."""
    found = {}
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            found.update(public(value, f"{prefix}{name}."))
        elif callable(value) and not inspect.isclass(value):
            found[prefix + name] = value
    return found


def further():
    """Return the functions of namespaces other than funcgrad.numpy, by their names in rows."""
    found = {}
    for space, (home, _, _) in HOMES.items():
        root = importlib.import_module(home)
        inner = [m.name for m in pkgutil.iter_modules(root.__path__) if m.ispkg] if space == "scipy" else []
        found.update(public(root, f"{space}.") if hasattr(root, "__all__") else {})
        for name in inner:
            module = importlib.import_module(f"{home}.{name}")
            found.update(public(module, f"{space}.{name}.") if hasattr(module, "__all__") else {})
    return found


def primitives():
    """Return every primitive in the modules of operations and in kinds.linear, by its name there."""
    names = [m.name for m in pkgutil.walk_packages(funcgrad.__path__, "funcgrad.")]
    operations = re.compile(r"funcgrad\.(primitives|.*\.operations)(\.|$)")
    modules = [importlib.import_module(name) for name in names if operations.match(name)]
    modules.append(importlib.import_module("funcgrad.kinds.linear"))
    found = {}
    for module in modules:
        for name, value in vars(module).items():
            primitive = getattr(value, "primitive", value)
            if isinstance(primitive, core.Primitive):
                assert found.setdefault(name, primitive) is primitive, f"two primitives are called {name}"
    return found


class Collector(core.Trace):
    """A trace that changes nothing and notes which primitives were applied."""

    def __init__(self):
        super().__init__()
        self.seen = set()

    def tracer(self, value):
        return core.tracer_of(value, self)

    def process(self, primitive, args, params):
        self.seen.add(primitive)
        lowered = [a._val if type(a) is core.Tracer and a._trace is self else a for a in args]
        ans = primitive.call(*lowered, **params)
        return tuple(map(self.tracer, ans)) if primitive.multiple else self.tracer(ans)


def used_by(case):
    """Return the primitives that a case applies, in its value and in both modes of its derivative."""
    trace = Collector()
    try:
        return collected(trace, case)
    finally:
        trace.close()


def collected(trace, case):
    """Return what ``trace`` has seen after ``case`` ran in it."""
    arrays = [
        trace.tracer(leaf.value) if type(leaf.value) is np.ndarray and (leaf.mapped or not case.live) else leaf.value
        for leaf in case.leaves
    ]
    case.call(case.fun, arrays)
    if not case.live:
        return trace.seen
    primals = tuple(trace.tracer(x) for x in case.primals)
    vjp(case.smooth, *primals)[1](tuple(map(trace.tracer, case.cotangents)))
    jvp(case.smooth, primals, case.tangents)
    return trace.seen


def test_table_has_rows():
    assert len(ROWS) > 100
    assert all(row.cases for row in ROWS), [row.op.name for row in ROWS if not row.cases]


def test_every_module_of_rows_has_rows():
    found = row_modules()
    assert found
    assert not set(found) & set(MACHINERY)
    assert [name for name, module in found.items() if not getattr(module, "OPS", None)] == []


def test_case_ids_are_unique():
    ids = [case.id for row in ROWS for case in row.cases]
    assert len(ids) == len(set(ids))


def test_every_row_names_existing_function():
    missing = [row.op.name for row in ROWS if row.op.fun is None and not callable(named(row.op.name, OURS))]
    assert missing == []


def test_every_row_without_comparison_has_reason():
    def complete(op):
        return op.jax is not None and op.order >= 2 and op.jit and op.portable

    assert [row.op.name for row in ROWS if not row.op.reason and not complete(row.op)] == []


def test_every_public_function_has_a_row():
    functions = [row.op.fun or named(row.op.name, OURS) for row in ROWS]
    functions += [named(row.op.name, OURS) for row in ROWS]
    tested = {id(function) for function in functions}
    offered = {**public(fnp), **further()}
    untested = {name for name, function in offered.items() if id(function) not in tested} - set(STATIC)
    assert sorted(untested - set(NO_ROW)) == []
    assert sorted(set(NO_ROW) - untested) == [], "these are tested, or are gone"
    assert all(NO_ROW.values())


@pytest.mark.filterwarnings("ignore:numpy.typename is deprecated")  # NumPy's function warns since 2.5
@pytest.mark.parametrize("name", STATIC)
def test_functions_of_shapes_match_numpy(name):
    identical(getattr(fnp, name)(*STATIC[name]), getattr(np, name)(*STATIC[name]))


@pytest.mark.parametrize("name", LOOKS)
@pytest.mark.parametrize("transform", [grad, vmap])
def test_functions_of_shapes_accept_tracers(name, transform):
    found = []

    def fun(x):
        found.append(getattr(fnp, name)(*[x if arg is M else arg for arg in STATIC[name]]))
        return fnp.sum(x)

    transform(fun)(np.stack([M, M]) if transform is vmap else M)
    identical(found[0], getattr(np, name)(*STATIC[name]))


def test_every_primitive_is_reached_by_a_row():
    seen = set().union(*[used_by(case) for row in ROWS for case in row.cases])
    unseen = {name for name, primitive in primitives().items() if primitive not in seen}
    assert sorted(unseen - set(NO_USE)) == []
    assert sorted(set(NO_USE) - unseen) == [], "these are reached, or are gone"
    assert all(NO_USE.values())


@pytest.mark.parametrize("name", ["reshape", "permute", "conj", "astype", "read", "add"])
def test_primitives_are_found(name):
    assert name in primitives()

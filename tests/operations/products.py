"""Rows for products of vectors, matrices and tensors, and for Einstein sums."""

from operations.spec import Sample, array, op

S = Sample


def real(*shapes):
    """Return arrays of these shapes with different numbers."""
    return tuple(array(*shape, seed=i) for i, shape in enumerate(shapes))


def complexes(*shapes):
    """Return complex arrays of these shapes with different numbers."""
    return tuple(array(*shape, seed=i, kind="complex") for i, shape in enumerate(shapes))


def mixed(first, second):
    """Return a complex and a real array."""
    return (*complexes(first), array(*second, seed=1))


V, M, B = (3,), (3, 3), (2, 3, 3)
STRETCHED = "NumPy lets axes of length 1 broadcast under a letter, JAX only under an ellipsis"


def formula(text, *shapes, **options):
    return S((text, *real(*shapes)), options)


def complex_formula(text, *shapes):
    return S((text, *complexes(*shapes)))


OPS = [
    op(
        "matmul",
        *[real(x, y) for x in (V, M, B) for y in (V, M, B)],
        real((2, 3), (3, 4)),
        real((1, 3), (3, 1)),
        real((5, 2, 3), (3, 4)),
        real((2, 3), (5, 3, 4)),
        real((4, 1, 2, 3), (5, 3, 2)),
        real((1, 2, 3), (4, 3, 2)),
        real((3,), (2, 2, 3, 1)),
        real((2, 2, 1, 3), (3,)),
        real((0, 3), (3, 2)),
        real((2, 0), (0, 3)),
        real((0,), (0,)),
        real((0, 2, 3), (3, 2)),
        complex_samples=[complexes(M, M), complexes(V, V), mixed(B, M), mixed(V, M)],
    ),
    op(
        "dot",
        real((), ()),
        real((), V),
        real(M, ()),
        real(V, V),
        real((2, 3), V),
        real(V, (3, 2)),
        real((2, 3), (3, 4)),
        real((2, 4, 3), V),
        real(V, (2, 3, 4)),
        real((2, 4, 3), (5, 3, 2)),
        real((2, 0), (0, 3)),
        (2.5, array(3)),
        complex_samples=[complexes(V, V), mixed(M, M), complexes((2, 3), (2, 3, 2))],
    ),
    op(
        "vdot",
        real((), ()),
        real(V, V),
        real((2, 3), (3, 2)),
        real((0,), (0,)),
        complex_samples=[complexes(V, V), mixed((2, 3), (3, 2)), complexes((), ())],
    ),
    op(
        "vecdot",
        real(V, V),
        real((2, 3), V),
        real((2, 3), (2, 3)),
        real((2, 1, 3), (4, 3)),
        S(real((3, 2), (3, 2)), {"axis": 0}),
        S(real((3, 2), (3,)), {"axis": 0}),
        complex_samples=[complexes(V, V), mixed((2, 3), V)],
    ),
    op(
        "matvec",
        real((2, 3), V),
        real((4, 2, 3), V),
        real((2, 3), (4, 3)),
        real((4, 2, 3), (4, 3)),
        real((5, 1, 2, 3), (4, 3)),
        complex_samples=[complexes((2, 3), V), complexes((4, 2, 3), (4, 3))],
    ),
    op(
        "vecmat",
        real(V, (3, 2)),
        real((4, 3), (3, 2)),
        real(V, (4, 3, 2)),
        real((4, 3), (4, 3, 2)),
        real((4, 3), (5, 1, 3, 2)),
        complex_samples=[complexes(V, (3, 2)), complexes((4, 3), (4, 3, 2))],
    ),
    op(
        "inner",
        real((), ()),
        real((), V),
        real(V, V),
        real((2, 3), V),
        real(V, (2, 3)),
        real((2, 3), (4, 3)),
        real((2, 1, 3), (4, 5, 3)),
        complex_samples=[complexes(V, V), mixed((2, 3), (2, 3))],
    ),
    op(
        "outer",
        real((2,), (3,)),
        real((), ()),
        real((2, 2), (3,)),
        real((2,), (2, 3)),
        real((0,), (3,)),
        complex_samples=[complexes((2,), (3,))],
    ),
    op(
        "tensordot",
        real((2, 3), (2, 3)),
        (*real((2, 3), (3, 4)), 1),
        (*real((2,), (3,)), 0),
        S((*real((2, 3, 4), (4, 3, 5)), ([1, 2], [1, 0])), unbatched=(2,)),
        S((*real((2, 3), (5, 2)), ((0,), (1,))), unbatched=(2,)),
        S((*real((2, 3, 4), (5, 4, 2)), ((-1, 0), (1, -1))), unbatched=(2,)),
        S((*real((2, 3), (3, 2)), (1, 0)), unbatched=(2,)),
        S((*real((2, 3), (0, 3)), (1, 1)), unbatched=(2,)),
        complex_samples=[S((*complexes((2, 3), (3, 4)), 1))],
    ),
    op(
        "kron",
        real((), ()),
        real((), (2,)),
        real((2,), (3,)),
        real((2, 2), (3,)),
        real((2,), (2, 3)),
        real((2, 3), (3, 2)),
        complex_samples=[complexes((2,), (3,))],
    ),
    op(
        "cross",
        real(V, V),
        real((2, 3), V),
        real(V, (2, 3)),
        real((2, 1, 3), (4, 3)),
        S(real((3, 2), (2, 3)), {"axisa": 0}),
        S(real((3, 2), (3, 2)), {"axis": 0}),
        S(real((2, 3), (3, 2)), {"axisb": 0, "axisc": 0}),
        complex_samples=[complexes(V, V)],
    ),
    op(
        "trace",
        (array(3, 3),),
        (array(2, 3), 1),
        (array(2, 3), -1),
        (array(2, 3), 5),
        (array(2, 3, 4),),
        S((array(2, 3, 4),), {"axis1": 2, "axis2": 0}),
        S((array(2, 3, 4),), {"offset": 1, "axis1": -1, "axis2": 1}),
        complex_samples=[(array(3, 3, kind="complex"),)],
    ),
    op(
        "einsum",
        # one operand
        formula("ij->ji", (2, 3)),
        formula("ba", (2, 3)),
        formula("ij->", (2, 3)),
        formula("ij->j", (2, 3)),
        formula("ii", (3, 3)),
        formula("ii->i", (3, 3)),
        formula("iij->j", (2, 2, 3)),
        formula("iiji->ij", (2, 2, 3, 2)),
        formula("...ij->...ji", (4, 2, 3)),
        formula("i...", (2, 3)),
        formula("->", ()),
        # two
        formula("ij,jk->ik", (2, 3), (3, 4)),
        formula("ij , kj", (2, 3), (4, 3)),
        formula("ij,ij->", (2, 3), (2, 3)),
        formula("ij,ij->ij", (2, 3), (2, 3)),
        formula("i,j->ji", (2,), (3,)),
        formula("bij,bjk->kbi", (2, 3, 4), (2, 4, 5)),
        formula("bi,bi->b", (2, 3), (2, 3)),
        formula("bj,bij->ib", (2, 4), (2, 3, 4)),
        formula("ii,ij->j", (3, 3), (3, 4)),
        formula("ijk,l->jl", (2, 3, 4), (5,)),
        formula(",ij->ij", (), (2, 3)),
        formula("...ij,...jk", (5, 4, 2, 3), (4, 3, 5)),
        formula("...ij,...jk->...ik", (1, 2, 3), (4, 3, 5)),
        formula("i...,j...->ij...", (3, 4, 5), (2, 5)),
        formula("ij,jk->ki", (2, 0), (0, 3)),
        # more
        formula("ij,jk,kl->il", (2, 3), (3, 4), (4, 5)),
        formula("i,i,i->i", V, V, V),
        formula("i,ij,j->", (2,), (2, 3), (3,)),
        formula("bi,bj,ijk->bk", (5, 2), (5, 3), (2, 3, 4)),
        formula("ij,jk,kl,lm", (2, 3), (3, 4), (4, 3), (3, 2), optimize=True),
        formula("ij,jk,kl", (2, 3), (3, 4), (4, 2), optimize="greedy"),
        # lists of axes
        S((array(2, 3), [0, 1], array(3, 4, seed=1), [1, 2], [2, 0]), unbatched=(1, 3, 4)),
        S((array(2, 3), [0, ...], array(3, 4, seed=1), [..., 1]), unbatched=(1, 3)),
        complex_samples=[
            complex_formula("ij,jk->ik", (2, 3), (3, 4)),
            complex_formula("ii,i->", (3, 3), (3,)),
            S(("ij,j->i", *mixed((2, 3), V))),
        ],
    ),
    op(
        "einsum",
        formula("ij,jk", (2, 1), (3, 4)),
        formula("ij,ij->ij", (1, 3), (2, 3)),
        formula("ij,ij,ij->i", (2, 3), (1, 3), (2, 1)),
        formula("i...,i...->...", (3, 4), (3, 1)),
        formula("ij,jk,kl", (2, 3), (3, 4), (4, 2), optimize=["einsum_path", (0, 2), (0, 1)]),
        jax=None,
        reason=STRETCHED + "; and takes no path in NumPy's form",
    ),
]

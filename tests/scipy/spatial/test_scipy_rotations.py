"""Rotations: SciPy's results, derivatives at no rotation and at half a turn, pytrees, errors."""

import itertools

import jax
import jax.numpy as jnp
import jax.scipy.spatial.transform
import numpy as np
import pytest
import scipy.spatial.transform
from helpers import at_least, traced

import funcgrad.numpy as fnp
from funcgrad import check_grads, grad, hessian, jacfwd, jacrev, jvp, tree, vmap
from funcgrad.errors import InputError, ShapeError
from funcgrad.scipy.spatial.transform import Rotation, Slerp

THEIRS = scipy.spatial.transform.Rotation
RNG = np.random.default_rng(0)
QUATS = RNG.normal(size=(9, 4))
VECTORS = RNG.normal(size=(9, 3)) * np.array([1e-9, 1e-4, 1e-2, 0.1, 0.4, 0.9, 1.2, 1.7, 2.0])[:, None]
SEQUENCES = ["".join(s) for s in itertools.product("xyz", repeat=3) if s[0] != s[1] != s[2]]


def close(got, want, tolerance=1e-14):
    np.testing.assert_allclose(got, want, rtol=0, atol=tolerance * max(1, np.abs(want).max()))


def test_representations_match_scipy():
    for run in (lambda fun, x: fun(x), traced):
        close(run(lambda q: Rotation.from_quat(q).as_quat(), QUATS), THEIRS.from_quat(QUATS).as_quat())
        for form in ("as_quat", "as_matrix", "as_rotvec", "as_mrp", "magnitude"):
            want = getattr(THEIRS.from_quat(QUATS), form)()
            close(run(lambda q, f=form: getattr(Rotation.from_quat(q), f)(), QUATS), want)
            want = getattr(THEIRS.from_rotvec(VECTORS), form)()
            close(run(lambda v, f=form: getattr(Rotation.from_rotvec(v), f)(), VECTORS), want)
        matrices = THEIRS.from_quat(QUATS).as_matrix()
        rough = matrices + 0.1 * RNG.normal(size=(9, 3, 3))
        # for a matrix that turns nothing, SciPy before 1.16 does not take the nearest rotation
        for m in (matrices, rough, 3.0 * matrices) if at_least(scipy, "1.16.0") else (matrices,):
            close(run(lambda m: Rotation.from_matrix(m).as_quat(), m), THEIRS.from_matrix(m).as_quat())
        close(
            run(lambda m: Rotation.from_matrix(m, assume_valid=True).as_quat(), matrices),
            THEIRS.from_matrix(matrices).as_quat(),
        )
        close(run(lambda v: Rotation.from_mrp(v).as_quat(), VECTORS), THEIRS.from_mrp(VECTORS).as_quat())
    degrees = THEIRS.from_rotvec(40 * VECTORS, degrees=True)
    close(Rotation.from_rotvec(40 * VECTORS, degrees=True).as_rotvec(degrees=True), degrees.as_rotvec(degrees=True))
    close(
        Rotation.from_quat(QUATS, scalar_first=True).as_quat(canonical=True, scalar_first=True),
        THEIRS.from_quat(QUATS, scalar_first=True).as_quat(canonical=True, scalar_first=True),
    )
    half = np.array([[1.0, 0, 0, 0], [-1.0, 2.0, 0, 0], [0, -1.0, 1.0, 0], [0, 0, -1.0, 0], [0, 0, 0, -1.0]])
    close(Rotation(half).as_quat(canonical=True), THEIRS(half).as_quat(canonical=True))
    close(Rotation(half).as_rotvec(), THEIRS(half).as_rotvec())


@pytest.mark.filterwarnings("ignore:Gimbal lock:UserWarning")
def test_euler_angles_match_scipy():
    for seq in [*SEQUENCES, *map(str.upper, SEQUENCES)]:
        close(traced(lambda q, s=seq: Rotation(q).as_euler(s), QUATS), THEIRS(QUATS).as_euler(seq), 1e-13)
        close(
            traced(lambda a, s=seq: Rotation.from_euler(s, a).as_quat(), VECTORS),
            THEIRS.from_euler(seq, VECTORS).as_quat(),
        )
        symmetric = seq[0] == seq[2]
        for middle in (0.0, 180.0) if symmetric else (90.0, -90.0):
            locked = THEIRS.from_euler(seq, [20.0, middle, 30.0], degrees=True)
            got = Rotation(locked.as_quat()).as_euler(seq, degrees=True)
            # within rounding of the lock SciPy's result may turn by a whole turn
            same = THEIRS.from_euler(seq, got, degrees=True) * locked.inv()
            assert same.magnitude() < 1e-7
            assert got[2] == 0.0
    for seq in ("x", "ZY"):
        angles = 50 * VECTORS[:, : len(seq)]
        close(
            Rotation.from_euler(seq, angles, degrees=True).as_quat(),
            THEIRS.from_euler(seq, angles, degrees=True).as_quat(),
        )
    assert Rotation.from_euler("x", 0.3).single
    with pytest.warns(UserWarning, match="Gimbal lock"):
        Rotation.identity().as_euler("zxz")


def test_arithmetic_matches_scipy():
    p, q = QUATS, QUATS[::-1] * 2.0
    ours, theirs = (Rotation(p), Rotation(q)), (THEIRS(p), THEIRS(q))
    close((ours[0] * ours[1]).as_quat(), (theirs[0] * theirs[1]).as_quat())
    close((ours[0] * ours[1][0]).as_quat(), (theirs[0] * theirs[1][0]).as_quat())
    close(ours[0].inv().as_quat(), theirs[0].inv().as_quat())
    # SciPy before 1.17 rounds the exponent to single precision
    for n in (0, 1, -1, 0.3 if at_least(scipy, "1.17.0") else 0.25, -2.5):
        close((ours[0] ** n).as_quat(), (theirs[0] ** n).as_quat(), 1e-13)
    for inverse in (False, True):
        close(ours[0].apply(VECTORS, inverse), theirs[0].apply(VECTORS, inverse))
        close(ours[0].apply(VECTORS[0], inverse), theirs[0].apply(VECTORS[0], inverse))
        close(ours[0][0].apply(VECTORS, inverse), theirs[0][0].apply(VECTORS, inverse))
        close(ours[0][0].apply(VECTORS[0], inverse), theirs[0][0].apply(VECTORS[0], inverse))
    for weights in (None, RNG.uniform(0.1, 2.0, 9)):
        close(ours[0].mean(weights).as_matrix(), theirs[0].mean(weights).as_matrix(), 1e-13)
        close(
            traced(lambda q, w=weights: Rotation(q).mean(w).as_matrix(), p), theirs[0].mean(weights).as_matrix(), 1e-13
        )
    times = np.array([0.0, 0.5, 0.7, 2.0, 2.1, 3.0, 4.0, 5.0, 6.0])
    at = np.array([0.0, 0.5, 0.61, 5.9, 6.0])
    want = scipy.spatial.transform.Slerp(times, theirs[0])(at).as_matrix()
    close(Slerp(times, ours[0])(at).as_matrix(), want, 1e-13)
    close(traced(lambda t, q, at: Slerp(t, Rotation(q))(at).as_matrix(), times, p, at), want, 1e-13)
    assert Slerp(times, ours[0])(0.3).single
    assert [r.single for r in ours[0]] == [True] * 9
    assert (len(ours[0]), ours[0].shape, ours[0][2:4].shape, bool(ours[0])) == (9, (9,), (2,), True)
    assert Rotation.identity(shape=(2, 3)).shape == (2, 3)
    assert Rotation.concatenate([ours[0], ours[1][0]]).shape == (10,)
    assert Rotation.concatenate(ours[0]) is ours[0]
    grid = Rotation(RNG.normal(size=(2, 3, 4)))
    assert grid.mean(axis=1).shape == (2,)
    assert grid.apply(VECTORS[:3]).shape == (2, 3, 3)
    assert repr(Rotation.identity()) == "Rotation.from_quat(array([0., 0., 0., 1.]))"


def test_align_vectors():
    a, w = VECTORS[3:], RNG.uniform(0.5, 2.0, 6)
    b = THEIRS(QUATS[0]).apply(a) + 0.1 * RNG.normal(size=(6, 3))
    for weights in (None, w):
        want, left = THEIRS.align_vectors(a, b, weights)
        got = Rotation.align_vectors(a, b, weights)
        close(got[0].as_matrix(), want.as_matrix(), 1e-13)
        close(got[1], left, 1e-12)
    check_grads(lambda a, b, w: Rotation.align_vectors(a, b, w)[0].as_matrix(), (a, b, w), order=2)
    check_grads(lambda a, b: Rotation.align_vectors(a, b)[1], (a, b), order=2)
    plane = a * np.array([1.0, 1.0, 0.0])  # singular values are 0 there
    check_grads(lambda b: Rotation.align_vectors(plane, b)[0].as_matrix(), (plane,), order=2)
    near = Rotation(QUATS) * Rotation.from_rotvec([0.0, 0.0, 1e-3])
    for options in ({}, {"atol": 2e-3}, {"atol": 0.1, "degrees": True}):
        want = THEIRS(QUATS).approx_equal(THEIRS(near.as_quat()), **options)
        np.testing.assert_array_equal(Rotation(QUATS).approx_equal(near, **options), want)


FORMS = {
    "rotvec to matrix": lambda v: Rotation.from_rotvec(v).as_matrix(),
    "rotvec to quat": lambda v: Rotation.from_rotvec(v).as_quat(),
    "there and back": lambda v: Rotation.from_rotvec(v).as_rotvec(),
    "rotvec to mrp": lambda v: Rotation.from_rotvec(v).as_mrp(),
    "mrp to rotvec": lambda v: Rotation.from_mrp(v).as_rotvec(),
    "euler to rotvec": lambda v: Rotation.from_euler("xyz", v).as_rotvec(),
    "rotvec to euler": lambda v: Rotation.from_rotvec(v).as_euler("xyz"),
    "through a matrix": lambda v: Rotation.from_matrix(Rotation.from_rotvec(v).as_matrix()).as_rotvec(),
    "power": lambda v: (Rotation.from_rotvec(v) ** 0.4).as_rotvec(),
    "between": lambda v: Slerp([0.0, 1.0], Rotation.from_rotvec(fnp.stack([v, 0.5 * v])))(0.3).as_rotvec(),
    "mean": lambda v: Rotation.from_rotvec(fnp.stack([v, 0.5 * v])).mean().as_rotvec(),
    "mean of equals": lambda v: Rotation.from_rotvec(fnp.stack([v, v, v])).mean().as_matrix(),
}


@pytest.mark.parametrize("form", FORMS)
def test_derivatives_at_and_near_identity(form):
    fun = FORMS[form]
    for v in (np.zeros(3), np.array([1e-9, 0.0, -2e-9]), VECTORS[7]):
        check_grads(fun, (v,), order=2)
    np.testing.assert_allclose(jacfwd(fun)(np.zeros(3)), jacrev(fun)(np.zeros(3)), atol=1e-14)


def test_third_derivatives_at_identity():
    third = jacfwd(jacfwd(jacrev(lambda v: Rotation.from_rotvec(v).as_matrix()[0, 0])))
    assert not third(np.zeros(3)).any()
    back = jacfwd(jacfwd(jacfwd(lambda v: Rotation.from_rotvec(v).as_rotvec())))(np.zeros(3))
    np.testing.assert_allclose(back, 0, atol=1e-13)
    np.testing.assert_allclose(
        hessian(lambda v: Rotation.from_rotvec(v).magnitude() ** 2)(VECTORS[3]), 2 * np.eye(3), atol=1e-12
    )
    assert not grad(lambda v: Rotation.from_rotvec(v).magnitude())(np.zeros(3)).any()


def test_derivatives_in_all_arguments():
    check_grads(lambda q, v: Rotation(q).apply(v), (QUATS, VECTORS[4]), order=2)
    check_grads(lambda q, v: Rotation(q).apply(v, inverse=True), (QUATS[0], VECTORS), order=1)
    check_grads(lambda p, q: (Rotation(p) * Rotation(q)).as_quat(), (QUATS, QUATS[::-1]), order=2)
    check_grads(lambda q, w: Rotation(q).mean(w).as_matrix(), (QUATS[:4], np.array([0.3, 1.0, 0.7, 0.5])), order=2)
    check_grads(lambda n: (Rotation(QUATS) ** n).as_quat(), (0.3,), order=2)
    check_grads(lambda q: Rotation(q).as_euler("zxz"), (QUATS[:3],), order=2)
    near = THEIRS(QUATS[:2]).as_matrix()
    for m in (near, near + 0.05 * RNG.normal(size=(2, 3, 3))):
        check_grads(lambda m: Rotation.from_matrix(m).as_matrix(), (m,), order=2)
    times, at = np.array([0.0, 1.0, 3.0]), np.array([0.4, 2.2])
    check_grads(lambda t, q, at: Slerp(t, Rotation(q))(at).as_quat(), (times, QUATS[:3], at), order=2)


def test_derivatives_match_jax():
    theirs = jax.scipy.spatial.transform
    v = VECTORS[5]
    pairs = [
        (lambda v: Rotation.from_rotvec(v).as_matrix(), lambda v: theirs.Rotation.from_rotvec(v).as_matrix()),
        (lambda v: Rotation.from_mrp(v).as_rotvec(), lambda v: theirs.Rotation.from_mrp(v).as_rotvec()),
        (lambda v: Rotation.from_euler("xzy", v).as_quat(), lambda v: theirs.Rotation.from_euler("xzy", v).as_quat()),
    ]
    for ours, other in pairs:
        want = jax.jit(jax.jacfwd(other))(v)
        np.testing.assert_allclose(jacrev(ours)(v), want, atol=1e-13)
        np.testing.assert_allclose(jax.jit(jacrev(ours))(v), want, atol=1e-13)
    times, at = np.array([0.0, 1.0, 3.0]), np.array([0.4, 2.2])
    got = jacrev(lambda q: Slerp(times, Rotation(q))(at).as_matrix())(QUATS[:3])
    # JAX does not divide quaternions by their lengths
    unit = lambda q: q / jnp.linalg.norm(q, axis=-1, keepdims=True)
    want = jax.jacfwd(lambda q: theirs.Slerp.init(times, theirs.Rotation.from_quat(unit(q)))(at).as_matrix())(QUATS[:3])
    np.testing.assert_allclose(got, want, atol=1e-12)


def test_rotations_are_pytrees():
    r = Rotation(QUATS)
    assert [leaf.shape for leaf in tree.leaves((r, r[0]))] == [(9, 4), (4,)]
    gradient = grad(lambda r: fnp.sum(r.apply(VECTORS) ** 2 * VECTORS))(r)
    assert type(gradient) is Rotation
    got = vmap(lambda r, v: r.apply(v))(r, VECTORS)
    np.testing.assert_allclose(got, THEIRS(QUATS).apply(VECTORS), atol=1e-14)
    turned = vmap(lambda r: r.inv())(r)
    np.testing.assert_array_equal(turned.as_quat(), r.inv().as_quat())
    slerp = Slerp(np.arange(9.0), r)
    moved = jvp(lambda s: s(0.3).as_quat(), (slerp,), (slerp,))[0]
    np.testing.assert_allclose(moved, slerp(0.3).as_quat())


REFUSED = [
    (ValueError, "zero norm", lambda x: Rotation(0.0 * x)),
    (ValueError, "Non-positive determinant", lambda x: Rotation.from_matrix(-np.eye(3) * x[0])),
    (ShapeError, "must be 3 x 3", lambda x: Rotation.from_matrix(x)),
    (ShapeError, "must have 4 real numbers", lambda x: Rotation(x[:3])),
    (ShapeError, "must have 3 real numbers", lambda x: Rotation.from_rotvec(x)),
    (ShapeError, "seq must name 1 to 3", lambda x: Rotation.from_euler("xq", x[:2])),
    (ShapeError, "seq must name 1 to 3", lambda x: Rotation.from_euler("xYz", x[:3])),
    (ShapeError, "seq must name 3 to 3", lambda x: Rotation(x).as_euler("xx")),
    (ShapeError, "must have one for each", lambda x: Rotation.from_euler("xy", x[:3])),
    (ShapeError, "num or shape", lambda x: Rotation.identity(2, shape=3)),
    (InputError, "takes Rotation objects", lambda x: Rotation.concatenate([x])),
    (InputError, "Single rotation has no len", lambda x: len(Rotation(x))),
    (InputError, "Single rotation is not subscriptable", lambda x: Rotation(x)[0]),
    (InputError, "Single rotation is not iterable", lambda x: list(Rotation(x))),
    (NotImplementedError, "modulus", lambda x: pow(Rotation(x), 2, 3)),
    (TypeError, "unsupported operand", lambda x: Rotation(x) * THEIRS.identity()),
    (ShapeError, "shapes must broadcast", lambda x: Rotation.identity(2) * Rotation.identity(3)),
    (ShapeError, "shapes must broadcast", lambda x: Rotation.identity(2).apply(np.ones((3, 3)))),
    (ShapeError, "no rotations", lambda x: Rotation.identity(0).mean()),
    (ShapeError, "must not be negative", lambda x: Rotation.identity(4).mean(-x)),
    (InputError, "return_sensitivity must be", lambda x: Rotation.align_vectors(np.eye(3), np.eye(3), x[:3], True)),
    (ShapeError, "two or more vectors", lambda x: Rotation.align_vectors(x[None, :3], x[None, 1:])),
    (ShapeError, "finite numbers", lambda x: Rotation.align_vectors(np.eye(3), np.eye(3), -x[:3])),
    (InputError, "rotations must be", lambda x: Slerp(x, THEIRS.identity(4))),
    (ShapeError, "a time for each", lambda x: Slerp(x, Rotation.identity(3))),
    (ShapeError, "strictly increasing", lambda x: Slerp(-x, Rotation.identity(4))),
    (ShapeError, "a number or a vector", lambda x: Slerp(x, Rotation.identity(4))(np.ones((1, 1)))),
    (ShapeError, "within the range", lambda x: Slerp(x, Rotation.identity(4))(9.0)),
]


@pytest.mark.parametrize(("error", "match", "fun"), REFUSED, ids=[match for _, match, _ in REFUSED])
def test_errors_name_a_remedy(error, match, fun):
    with pytest.raises(error, match=match):
        grad(lambda x: (fun(x), fnp.sum(x))[1])(np.arange(1.0, 5.0))


def test_reduction_without_groups_is_the_rotation():
    def fun(x):
        turn = scipy.spatial.transform.Rotation.from_rotvec(x)
        same, left, right = turn.reduce(return_indices=True)
        assert left is right is None
        return turn.reduce().as_rotvec() + same.as_rotvec()

    x = np.array([0.1, 0.2, 1.7])
    np.testing.assert_allclose(traced(fun, x), 2 * x, rtol=1e-12)
    np.testing.assert_allclose(jacrev(fun)(x), 2 * np.eye(3), atol=1e-12)


def test_slerp_at_no_times_and_under_jit():
    def fun(x, times):
        turns = Rotation.from_rotvec(fnp.stack([x, 2 * x]))
        return Slerp([0.0, 1.0], turns)(times).as_rotvec()

    x = np.array([0.1, 0.2, 0.7])
    assert jvp(lambda x: fun(x, np.zeros(0)), (x,), (x,))[1].shape == (0, 3)
    got = jax.jit(jax.jacfwd(lambda x: fun(x, x[0])))(x)
    want = (1 + x[0]) * np.eye(3) + np.outer(x, [1.0, 0.0, 0.0])
    np.testing.assert_allclose(got, want, atol=1e-6)

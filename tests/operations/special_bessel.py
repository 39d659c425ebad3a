"""Rows for Bessel functions and their relatives."""

import numpy as np

from operations.spec import Sample, op

X = np.array([0.7, 4.3])
V = np.array([0.4, 2.6])
WHOLE = np.array([0, 3])
Z = np.array([0.8 - 0.4j, 3.1 + 1.2j])
NO_JAX = {"jax": None, "on_jax": False, "reason": "JAX has no such kernel"}


def row(name, *samples, **options):
    return op(f"scipy.special.{name}", *samples, **{**NO_JAX, **options})


OPS = [
    *[row(name, (X,)) for name in ("j0", "j1", "y0", "y1", "k0", "k1", "k0e", "k1e")],
    *[op(f"scipy.special.{name}", (X,)) for name in ("i0", "i1", "i0e", "i1e")],
    *[row(name, (V, X)) for name in ("jv", "yv", "iv", "kv", "jve", "yve", "ive", "kve")],
    *[row(name, (V, X)) for name in ("hankel1", "hankel2", "hankel1e", "hankel2e")],
    *[row(name, (WHOLE, X)) for name in ("yn", "kn")],
    *[row(name, (V, X)) for name in ("jvp", "yvp", "ivp", "kvp", "h1vp", "h2vp")],
    op("scipy.special.bessel_jn", Sample((np.array([17.3, 21.6]),), {"v": 2}), numpy=None),
    *[row(name, (V, X)) for name in ("struve", "modstruve")],
    *[row(name, (X,)) for name in ("airy", "airye", "kelvin")],
    *[row(name, (X,)) for name in ("ber", "bei", "ker", "kei", "berp", "beip", "kerp", "keip")],
    *[row(name, (X,)) for name in ("itj0y0", "it2j0y0", "iti0k0", "it2i0k0", "modfresnelp", "modfresnelm")],
    *[row(name, (X,)) for name in ("itstruve0", "it2struve0", "itmodstruve0")],
    row("itairy", Sample((X,), frozen=(0,))),  # SciPy's values have five digits: test_special_bessel.py
    *[row(name, Sample((V, X), frozen=(0,))) for name in ("pbdv", "pbvv")],
    row("pbwa", Sample((V, X / 2), frozen=(0,))),
    *[row(f"spherical_{kind}n", (WHOLE, X), Sample((WHOLE, X), {"derivative": True})) for kind in ("j", "y", "i", "k")],
]

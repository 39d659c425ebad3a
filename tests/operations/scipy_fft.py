"""Rows for Fourier, cosine and sine transforms with SciPy's arguments."""

import scipy.fft

from funcgrad.scipy import fft
from operations.spec import Sample, array, op, positive

S = Sample
AS_NUMPYS = "the transform of NumPy's name, which is compared with JAX"
NOT_IN_JAX = "JAX has type 2 only: test_scipy_fft.py computes the others on its arrays"


def real(*shape, **options):
    return S((array(*shape),), options)


def complexes(*shape, **options):
    return S((array(*shape, kind="complex"),), options)


def fourier(name, *samples, complex_samples=()):
    """Return a row for a transform that ``fourier.py`` compares under NumPy's name."""
    return op(f"scipy.fft.{name}", *samples, complex_samples=complex_samples, jax=None, reason=AS_NUMPYS)


def of_another_type(name, *samples, **options):
    return op(f"scipy.fft.{name}", *samples, jax=None, reason=NOT_IN_JAX, **options)


def hankel(name, *numbers):
    samples = [S((array(2, 5),)), S((array(4),))]
    return op(
        f"scipy.fft.{name}",
        *samples,
        fun=lambda a, *_: getattr(fft, name)(a, *numbers),
        numpy=lambda a, *_: getattr(scipy.fft, name)(a, *numbers),
        jax=None,
        reason="JAX has no such function",
    )


OPS = [
    fourier("fft", complex_samples=[complexes(3, 2, n=4, axis=0, norm="forward")]),
    fourier("ifft", complex_samples=[complexes(3)]),
    fourier("rfft", real(4, norm="ortho")),
    fourier("irfft", complex_samples=[complexes(3)]),
    fourier("hfft", complex_samples=[complexes(3, n=5)]),
    fourier("ihfft", real(5)),
    fourier("fft2", complex_samples=[complexes(2, 3)]),
    fourier("ifft2", complex_samples=[complexes(2, 3)]),
    fourier("rfft2", real(2, 3)),
    fourier("irfft2", complex_samples=[complexes(2, 3)]),
    fourier("hfft2", complex_samples=[complexes(2, 3, norm="forward")]),
    fourier("ihfft2", real(2, 3, norm="ortho")),
    fourier("fftn", complex_samples=[complexes(2, 3, s=4, axes=0)]),
    fourier("ifftn", complex_samples=[complexes(2, 3, s=[2])]),
    fourier("rfftn", real(2, 3, s=(-1, 2), axes=(1, 0))),
    fourier("irfftn", complex_samples=[complexes(2, 3, axes=-1)]),
    fourier("hfftn", complex_samples=[complexes(2, 3, s=(2, 5))]),
    fourier("ihfftn", real(2, 3, axes=[1, 0])),
    fourier("fftfreq", (4, positive())),
    fourier("rfftfreq", (4, positive())),
    op("scipy.fft.next_fast_len", (13,), differentiable=False, jax=None, reason="about lengths"),
    op("scipy.fft.prev_fast_len", (13, True), differentiable=False, jax=None, reason="about lengths"),
    op("scipy.fft.dct", real(4), real(3, 2, n=4, axis=0, norm="ortho")),
    op("scipy.fft.idct", real(4), real(3, n=2, norm="ortho")),
    op("scipy.fft.dctn", real(2, 3), real(2, 3, s=(3, 2), axes=(1, 0), norm="ortho")),
    op("scipy.fft.idctn", real(2, 3)),
    of_another_type("dct", real(4, type=1, norm="forward"), complex_samples=[complexes(3, type=3)]),
    of_another_type("idct", real(3, type=4)),
    of_another_type("dst", real(4), real(3, type=1, norm="forward"), complex_samples=[complexes(2, 3, axis=0)]),
    of_another_type("idst", real(3, type=3, norm="ortho", orthogonalize=False)),
    of_another_type("dctn", real(2, 3, type=1)),
    of_another_type("idctn", real(2, 3, type=3, axes=0)),
    of_another_type("dstn", real(2, 3, s=-1, axes=1)),
    of_another_type("idstn", real(2, 3, norm="ortho")),
    hankel("fht", 0.5, 0.3),
    hankel("fht", 0.5, 0.3, 0.2, 0.4),
    hankel("ifht", 0.5, 1.5, 0.2, -0.4),
]

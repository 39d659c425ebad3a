"""Rows for Fourier transforms."""

from operations.spec import Sample, array, op, positive

S = Sample
UNLIKE_JAX = "JAX takes neither -1 in s nor an axis twice"


def real(*shape, **options):
    return S((array(*shape),), options)


def complexes(*shape, **options):
    return S((array(*shape, kind="complex"),), options)


def one(name, *, spectrum=False, **options):
    """Return a row for a transform along one axis: even and odd, truncated and padded."""
    of_reals = (real(4), real(5, norm="ortho"))
    more = (real(3, 2, n=4, axis=0, norm="forward"), real(5, n=2))
    if spectrum:
        more = (complexes(4), complexes(3, n=5), complexes(3, 2, n=3, axis=0, norm="ortho"), complexes(2, n=6))
        return op(name, real(3), real(3, n=5), complex_samples=more, **options)
    if name in ("fft.rfft", "fft.ihfft"):
        return op(name, *of_reals, *more, **options)
    return op(name, *of_reals, complex_samples=(complexes(4), complexes(3, 2, n=4, axis=0, norm="forward")), **options)


def several(name, *, spectrum=False):
    """Return a row for a transform along several axes."""
    if spectrum:
        return op(
            name,
            real(2, 3),
            complex_samples=(
                complexes(3, 2, norm="ortho"),
                complexes(2, 3, 2, s=(3, 5), axes=(0, 1)),
                complexes(3, 2, s=(2, 3), axes=(1, 0), norm="forward"),
            ),
        )
    samples = (real(2, 3), real(3, 2, 2, s=(2, 4), axes=(0, -1), norm="ortho"))
    if "rfft" in name:
        return op(name, *samples, real(3, 2, s=(3, 2), axes=(1, 0), norm="forward"))
    return op(name, *samples, complex_samples=(complexes(2, 3), complexes(2, 3, s=(4, 2), axes=(1, 0), norm="forward")))


OPS = [
    one("fft.fft"),
    one("fft.ifft"),
    one("fft.rfft"),
    one("fft.irfft", spectrum=True),
    one("fft.hfft", spectrum=True),
    one("fft.ihfft"),
    several("fft.fft2"),
    several("fft.ifft2"),
    several("fft.rfft2"),
    several("fft.irfft2", spectrum=True),
    several("fft.fftn"),
    several("fft.ifftn"),
    several("fft.rfftn"),
    several("fft.irfftn", spectrum=True),
    op("fft.fftn", real(3, 2, s=(-1, 4), axes=(0, 1)), real(3, axes=(0, 0)), jax=None, reason=UNLIKE_JAX),
    op("fft.rfftn", real(2, 3, s=(4, -1), axes=(0, 1)), real(3, axes=(0, 0)), jax=None, reason=UNLIKE_JAX),
    op(
        "fft.irfftn",
        complex_samples=[complexes(2, 3, s=(2, -1), axes=(0, 1)), complexes(3, axes=(0, 0))],
        jax=None,
        reason=UNLIKE_JAX,
    ),
    op("fft.fftshift", real(5), real(2, 3, axes=1), complex_samples=[complexes(3, 4, axes=(0, 1))]),
    op("fft.ifftshift", real(5), real(2, 3, axes=-1), complex_samples=[complexes(3, 4, axes=[0])]),
    op("fft.fftfreq", (5,), (4, 0.5), (5, positive())),
    op("fft.rfftfreq", (5,), (4, 0.5)),
]

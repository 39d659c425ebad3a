"""Devices: where values are, and where new values go."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import entry_points
from typing import Any, NoReturn

import numpy as np

from funcgrad import backend
from funcgrad.core import describe, is_array, plain_value
from funcgrad.errors import DeviceError, InputError
from funcgrad.interop.jax.conversion import copied_to_jax, flatten, to_numpy
from funcgrad.kinds import linear
from funcgrad.kinds.rules import Operation
from funcgrad.optional import double_precision, import_jax
from funcgrad.typing import PyTree

#: Command that installs the plugin for a platform.
_PLUGINS = {
    "gpu": "pip install 'jax[cuda13]' or 'jax[cuda12]' for NVIDIA, 'jax[rocm7-local]' for AMD",
    "cuda": "pip install 'jax[cuda13]' or 'jax[cuda12]'",
    "rocm": "pip install 'jax[rocm7-local]'",
    "tpu": "pip install 'jax[tpu]'",
}


def find_device(jax: Any, call: str, where: Any) -> Any:
    """Return the device or sharding that ``where`` names.

    Raises:
        DeviceError: there is no such device; the message names the plugin that is missing (a ``RuntimeError``).
        InputError: ``where`` is not a name, a device or a sharding (a ``TypeError``).
    """
    if isinstance(where, (jax.Device, jax.sharding.Sharding)):
        return where
    if not isinstance(where, str):
        raise InputError(
            f"{call}: a device is needed, got {describe(where)}. Give 'cpu', 'gpu', 'gpu:1', a jax.Device or a "
            "jax.sharding.Sharding."
        )
    platform, _, number = where.partition(":")
    try:
        devices = jax.devices(platform)
    except RuntimeError as error:
        _raise_no_device(jax, call, platform, error)
    try:
        return devices[int(number or 0)]
    except (ValueError, IndexError):
        raise DeviceError(
            f"{call}: there is no such device, got {where!r}. Of the platform {platform!r} there are "
            f"{', '.join(repr(f'{platform}:{i}') for i in range(len(devices)))}."
        ) from None


def _raise_no_device(jax: Any, call: str, platform: str, error: Exception) -> NoReturn:
    """Raise the error that says why there is no device of ``platform``."""
    have = sorted({device.platform for device in jax.devices()})
    plugins = sorted(point.name for point in entry_points(group="jax_plugins"))
    chosen = os.environ.get("JAX_PLATFORMS") or os.environ.get("JAX_PLATFORM_NAME")
    if platform not in _PLUGINS:
        remedy = f"Platforms are {', '.join(('cpu', *_PLUGINS))}."
    elif chosen:
        remedy = f"The environment allows {chosen!r} only: unset JAX_PLATFORMS."
    elif plugins:
        remedy = f"The plugins {', '.join(plugins)} are installed and found no device: look at the driver."
    else:
        remedy = f"JAX's plugin for it is not installed: {_PLUGINS[platform]}."
    raise DeviceError(
        f"{call}: JAX finds no device of the platform {platform!r}, got {', '.join(have)} only. {remedy}"
    ) from error


def _put_impl(xp: Any, x: Any, *, to: Any, home: Any) -> Any:
    jax = import_jax("device_put")
    if to is None:
        return to_numpy(jax, [x])[0] if xp is not np else x
    if isinstance(x, jax.core.Tracer):
        return jax.device_put(x, to)
    with double_precision(jax):
        try:
            return jax.device_put(copied_to_jax(jax, x), to)
        except ValueError:
            if getattr(to, "is_fully_addressable", True):
                raise
            # Older versions put nothing on devices of other processes; each process says what its own devices hold.
            whole = np.asarray(x)
            return jax.make_array_from_callback(whole.shape, to, lambda index: copied_to_jax(jax, whole[index]))


#: ``_put(x, to, home)``: ``x`` at ``to``. A cotangent returns to ``home``: a JAX array's device, or None for NumPy.
_put: Operation = linear(
    "device_put",
    _put_impl,
    transpose=lambda ct, *, to, home: _put(ct, to=home, home=to),
    conforms=True,
    batch=lambda size, args, batched, params: (_put(args[0], **params), True),
)


def device_put(tree_: PyTree, device: Any) -> PyTree:
    """Return arrays on a device, as JAX arrays: operations on them run there, and their results stay there.

    float64 stays float64; uncompiled operations on it need JAX's x64 mode, as everywhere in JAX. Derivatives
    pass through ``device_put``; cotangents go back to the device of the values.

    Args:
        tree_: an array, a number, or containers of them. NumPy arrays are copied.
        device: ``"gpu"``, ``"cpu"``, ``"gpu:1"``, a ``jax.Device``, or a ``jax.sharding.Sharding`` that
            distributes an array over several devices.

    Raises:
        MissingExtraError: JAX is not installed (an ``ImportError``).
        DeviceError: there is no such device; the message names the plugin that is missing (a ``RuntimeError``).
        InputError: ``device`` is not a device, or a leaf is neither an array nor a number (a ``TypeError``).

    Example:
        >>> import numpy as np
        >>> from funcgrad.interop import device_put
        >>> x = device_put({"w": np.ones(3)}, "cpu")["w"]
        >>> next(iter(x.devices())).platform, x.dtype
        ('cpu', dtype('float64'))
    """
    jax = import_jax("device_put")
    to = find_device(jax, "device_put", device)
    leaves, containers = flatten(tree_)
    for leaf in leaves:
        if not is_array(leaf):
            raise InputError(
                f"device_put: a leaf is not an array or a number, got {describe(leaf)}. Leave it out of what is moved."
            )
    return containers(*[put_on_device(jax, leaf, to) for leaf in leaves])


def put_on_device(jax: Any, leaf: Any, to: Any) -> Any:
    """Return ``leaf`` on a device, or distributed by a sharding."""
    x = plain_value(leaf)
    known = backend.namespace_of(x) is not np and not isinstance(x, jax.core.Tracer)
    return _put(leaf, to=to, home=x.sharding if known else None)


@contextmanager
def default_device(device: Any) -> Iterator[Any]:
    """Put JAX's new values on ``device`` in this block: results of ``jit`` and ``from_jax`` for NumPy arrays.

    Values that are on a device already stay there. The end of the block restores the previous default, also after an
    error.

    Args:
        device: ``"gpu"``, ``"cpu"``, ``"gpu:1"`` or a ``jax.Device``.

    Raises:
        MissingExtraError: JAX is not installed (an ``ImportError``).
        DeviceError: there is no such device (a ``RuntimeError``).
        InputError: ``device`` is not a device (a ``TypeError``).

    Example:
        >>> import numpy as np
        >>> from funcgrad.interop import default_device, jit
        >>> with default_device("cpu") as device:
        ...     print(device.platform, jit(np.sum)(np.ones(3)))
        cpu 3.0
    """
    jax = import_jax("default_device")
    found = find_device(jax, "default_device", device)
    if not isinstance(found, jax.Device):
        raise InputError(
            f"default_device: one device is needed, got {found}. Give its shardings to jit or device_put instead."
        )
    with jax.default_device(found):
        yield found

"""``device_put`` and ``default_device``; test_jit.py starts an interpreter with several devices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import funcgrad.numpy as fnp
from funcgrad import grad, hessian, jacrev, jvp, vjp, vmap
from funcgrad.errors import DeviceError, InputError
from funcgrad.interop.jax import devices
from funcgrad.interop.jax.devices import default_device, device_put
from funcgrad.interop.jax.jit import jit
from funcgrad.optional import precision_switch

X = np.array([0.3, 0.7, 1.1])
CPU = jax.devices("cpu")[0]


@pytest.mark.parametrize("where", ["cpu", "cpu:0", CPU, jax.sharding.SingleDeviceSharding(CPU)])
def test_device_put_moves_trees(where):
    moved = device_put({"w": X, "n": (2, None, 1.5, np.float32(1), jnp.ones(2))}, where)
    leaves = jax.tree.leaves(moved)
    assert all(isinstance(leaf, jax.Array) and leaf.devices() == {CPU} for leaf in leaves)
    assert [str(leaf.dtype) for leaf in leaves] == ["int64", "float64", "float32", "float64", "float64"]
    np.testing.assert_array_equal(moved["w"], X)


def test_device_put_keeps_64_bits():
    with precision_switch(jax)(False):
        assert device_put(X, "cpu").dtype == np.float64
        assert device_put(np.arange(3), "cpu").dtype == np.int64
        assert jnp.ones(2).dtype == np.float32
        np.testing.assert_allclose(jit(grad(lambda x: fnp.sum(np.sin(x))))(device_put(X, "cpu")), np.cos(X), rtol=1e-14)


def test_memory_is_not_shared():
    buffer = np.empty(1024 + 8)
    offset = -buffer.ctypes.data % 64 // 8
    x = buffer[offset : offset + 1024]
    x[:] = 1.0
    moved, again = device_put(x, "cpu"), device_put(x, "cpu")
    x[:] = 0.0
    assert float(moved.sum()) == float(again.sum()) == 1024


def test_operations_stay_where_the_values_are():
    x = device_put(X, "cpu")
    for result in (fnp.sin(x), grad(lambda x: fnp.sum(fnp.sin(x)))(x), jit(np.sin)(x)):
        assert isinstance(result, jax.Array)
        assert result.devices() == {CPU}


def test_derivatives_return_to_host():
    f = lambda x: fnp.sum(fnp.sin(device_put(x * 2, "cpu")))
    expected = 2 * np.cos(2 * X)
    slope = grad(f)(X)
    assert type(slope) is np.ndarray
    np.testing.assert_allclose(slope, expected, rtol=1e-14)
    np.testing.assert_allclose(hessian(f)(X), np.diag(-4 * np.sin(2 * X)), rtol=1e-14)
    assert isinstance(grad(f)(jnp.asarray(X)), jax.Array)
    np.testing.assert_allclose(jit(grad(f))(X), expected, rtol=1e-14)
    np.testing.assert_allclose(jax.jit(grad(f))(X), expected, rtol=1e-14)
    np.testing.assert_allclose(vmap(grad(lambda x: fnp.sin(device_put(x, "cpu"))))(X), np.cos(X), rtol=1e-14)
    np.testing.assert_allclose(jvp(f, (X,), (np.ones(3),))[1], expected.sum(), rtol=1e-14)
    np.testing.assert_allclose(jacrev(lambda x: device_put({"a": x}, "cpu")["a"])(X), np.eye(3))
    assert type(vjp(lambda x: device_put(x, "cpu"), X)[1](jnp.ones(3))[0]) is np.ndarray


def test_missing_gpu_error_names_plugin(monkeypatch):
    monkeypatch.delenv("JAX_PLATFORMS", raising=False)
    monkeypatch.setattr(devices, "entry_points", lambda group: [])
    with pytest.raises(
        DeviceError, match=r"device_put: .*'gpu', got cpu only. .*not installed: pip install 'jax\[cuda13\]'"
    ):
        device_put(X, "gpu")
    with pytest.raises(DeviceError, match=r"default_device: .*'tpu', got cpu only. .*pip install 'jax\[tpu\]'"):
        default_device("tpu").__enter__()
    with pytest.raises(DeviceError, match=r"jit: .*'cuda:1'|jit: .*'cuda'"):
        jit(np.sin, device="cuda:1")(X)
    plugin = type("EntryPoint", (), {"name": "xla_cuda13"})()
    monkeypatch.setattr(devices, "entry_points", lambda group: [plugin])
    with pytest.raises(DeviceError, match=r"xla_cuda13 .* found no device: look at the driver"):
        device_put(X, "gpu")
    monkeypatch.setenv("JAX_PLATFORMS", "cpu")
    with pytest.raises(DeviceError, match="allows 'cpu' only: unset JAX_PLATFORMS"):
        device_put(X, "gpu")


def test_invalid_device_raises():
    with pytest.raises(DeviceError, match=r"got 'cpu:99'. .* 'cpu:0'"):
        device_put(X, "cpu:99")
    with pytest.raises(DeviceError, match=r"'quantum', got cpu only. Platforms are cpu, gpu"):
        device_put(X, "quantum")
    with pytest.raises(InputError, match="a device is needed, got int 3"):
        device_put(X, 3)
    with pytest.raises(InputError, match="not an array or a number, got str 'name'"):
        device_put({"a": "name"}, "cpu")
    with pytest.raises(InputError, match="one device is needed"):
        default_device(jax.sharding.SingleDeviceSharding(CPU)).__enter__()


def test_default_device_is_restored():
    before = jax.config.jax_default_device
    with default_device("cpu") as device:
        assert device == CPU
        assert jax.config.jax_default_device == CPU
        np.testing.assert_array_equal(jit(np.sin)(X), jit(np.sin)(X))
    assert jax.config.jax_default_device is before
    with pytest.raises(ZeroDivisionError), default_device(CPU):
        _ = 1 // 0
    assert jax.config.jax_default_device is before

    @default_device("cpu")
    def inside():
        return jax.config.jax_default_device

    assert inside() == CPU
    assert jax.config.jax_default_device is before

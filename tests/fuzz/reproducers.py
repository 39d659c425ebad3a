"""Random programs as scripts that a person can paste and run: they need funcgrad and JAX only."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from fuzz import helpers
from fuzz.judging import Verdict
from fuzz.programs import Program, as_argument

__all__ = ["script"]

ALWAYS = ("each", "jax_library", "funcgrad_library")


def script(program: Program, verdict: Verdict, title: str) -> str:
    """Return the program as a script that shows both results, and fails while they differ."""
    code = program.source() + "\n\n" + program.transforms()
    their_code = program.source(jax=True)
    branched = their_code != program.source() and not program.lifted
    parts = [
        f'"""{title}\n\n{verdict.kind}: {_harmless(verdict.details)}\n"""\n',
        _imports(program),
        'jax.config.update("jax_enable_x64", True)\n',
        *[f"{name} = {_array(value)}\n" for name, value in program.consts.items()],
        f"x = {_argument(program)}\n\n\n",
        _helpers(code),
        f"{code}\n\n",
        their_code.replace("def program", "def program_of_jax") + "\n\n" if branched else "",
        _calls(program, branched),
    ]
    return "".join(parts)


def _imports(program: Program) -> str:
    lines = ["import math", "from types import SimpleNamespace", "", "import jax", "import jax.numpy as jnp"]
    lines += ["import numpy", "import toolz", "", "import funcgrad", "import funcgrad.numpy"]
    if program.lifted:
        lines.append("from funcgrad.interop import to_jax")
    return "\n".join(lines) + "\n\n"


def _harmless(text: str) -> str:
    return text.replace("\\", "/").replace('"""', "'''")


def _array(x: Any) -> str:
    x = np.asarray(x)
    return f"numpy.array({x.tolist()!r}, '{x.dtype}')" if x.size else f"numpy.zeros({x.shape}, '{x.dtype}')"


def _argument(program: Program) -> str:
    argument: Any = as_argument(program.inputs)
    if not isinstance(argument, dict):
        return _array(argument)
    return "{" + ", ".join(f"{key!r}: {_array(x)}" for key, x in argument.items()) + "}"


def _helpers(code: str) -> str:
    """Return the helpers that the code calls, and the helpers that these call."""
    sources = {name: inspect.getsource(f) for name, f in vars(helpers).items() if inspect.isfunction(f)}
    wanted = {name for name in sources if name in ALWAYS or f"{name}(" in code}
    while more := {name for name in sources if any(f"{name}(" in sources[w] for w in wanted)} - wanted:
        wanted |= more
    scales = f"scales = {_array(helpers.scales)}\n\n\n" if "(scales)" in code else ""
    return scales + "".join(f"{source}\n\n" for name, source in sources.items() if name in wanted)


def _calls(program: Program, branched: bool) -> str:
    np_ = "numpy" if program.dispatch else "funcgrad.numpy"
    if program.lifted:
        fun = f"to_jax(lambda x: program({np_}, funcgrad_library(), x))"
    else:
        fun = f"lambda x: {'program_of_jax' if branched else 'program'}(jnp, jax_library(), x)"
    jitted = """
    fun = transformed(funcgrad.numpy, funcgrad_library(), lambda x: program(funcgrad.numpy, funcgrad_library(), x))
    jitted = jax.jit(fun)(x)
    print("under jax.jit", jitted)
"""
    point = "jax.tree.map(jnp.asarray, x)"
    return f"""if __name__ == "__main__":
    ours = transformed({np_}, funcgrad_library(), lambda x: program({np_}, funcgrad_library(), x))(x)
    print("funcgrad", ours)
{jitted if program.compiled else ""}    theirs = transformed(jnp, jax_library(), {fun})({point})
    print("JAX", theirs)
    for a, b in zip(jax.tree.leaves(ours), jax.tree.leaves(theirs), strict=True):
        numpy.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-11)
"""

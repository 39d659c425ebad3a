"""Every function and method takes NumPy's arguments: same names, same order, same defaults."""

import inspect

import numpy as np
import pytest
from helpers import at_least, in_one_test

import funcgrad.numpy as fnp
from funcgrad import grad
from funcgrad.core import Tracer

SPACES = {"": (np, fnp), "linalg.": (np.linalg, fnp.linalg), "fft.": (np.fft, fnp.fft)}

# Our default where NumPy's default is a marker for "not given"; it means the same.
NEUTRAL = {
    "axes": None,
    "axis": None,
    "correction": None,
    "initial": None,
    "keepdims": False,
    "mean": None,
    "where": True,
}
# Parameters of NumPy that no function here has.
NOWHERE = {"like": "it chooses the library that makes an array; here that is this one, and its results are NumPy's"}
# Parameters that only functions here have: keywords only, so no call written for NumPy changes its meaning.
MORE = {
    "argsort": {"descending": "the array API standard's"},
    "sort": {"descending": "the array API standard's"},
    "fft.fftfreq": {"dtype": "the array API standard's"},
    "fft.rfftfreq": {"dtype": "the array API standard's"},
}
OTHERWISE = {
    "clip": "min and max may be positional too, as in the array API standard; a_min and a_max are keywords",
    "einsum": "the first operand has a name, and so have the keywords that NumPy passes on",
    "einsum_path": "as einsum; einsum_call is private",
    "linalg.matmul": "numpy.matmul, which takes more",
    "linalg.vecdot": "numpy.vecdot, which takes more",
    **dict.fromkeys(
        ["array2string", "array_repr", "array_str", "format_float_positional", "format_float_scientific", "isnat"],
        "hands everything on to NumPy",
    ),
    "nditer": "options about memory are refused, or handed on to NumPy",
}


def pairs():
    for space, (theirs, ours) in SPACES.items():
        for name in ours.__all__:
            numpys, own = getattr(theirs, name, None), getattr(ours, name)
            if numpys is not None and numpys is not own and callable(own) and not inspect.isclass(numpys):
                yield space + name, numpys, own


PAIRS = {name: (numpys, own) for name, numpys, own in pairs()}
PAIRS["nditer"] = (np.nditer, fnp.nditer)


def described(function, name=""):
    """Return the positional parameters in order and the keywords in any order, with names, kinds and defaults."""
    positional, keywords = [], {}
    for p in inspect.signature(function).parameters.values():
        if p.name in NOWHERE or p.name in MORE.get(name, ()):
            continue
        default = NEUTRAL[p.name] if repr(p.default) == "<no value>" and p.name in NEUTRAL else p.default
        if p.kind is p.KEYWORD_ONLY:
            keywords[p.name] = default
        else:
            positional.append((p.name, p.kind, default))
    return positional, keywords


def test_every_signature_is_compared():
    assert len(PAIRS) > 380
    assert {"fft.rfft", "linalg.svd", "sum", "interp", "add"} <= set(PAIRS)
    assert set(OTHERWISE) | set(MORE) <= set(PAIRS)


#: Functions whose signature in NumPy was different before a version.
BEFORE = {
    "2.3.0": {"take_along_axis", "unique"},
    "2.4.0": {"percentile", "nanpercentile", "quantile", "nanquantile", "corrcoef", "reshape", "array"},
}
OLDER = set().union(*[names for version, names in BEFORE.items() if not at_least(np, version)])
#: Methods that NumPy had before 2.4, if only to report their removal.
GONE = {"itemset", "newbyteorder", "ptp", "tostring"}


def has_signature(function):
    """Return whether the signature can be inspected: before 2.4 that of compiled functions cannot."""
    try:
        return bool(inspect.signature(function))
    except ValueError:
        assert not at_least(np, "2.4.0"), function
        return False


@in_one_test({"name": [name for name in PAIRS if name not in OLDER and has_signature(PAIRS[name][0])]})
def test_signature_matches_numpy(name):
    numpys, own = PAIRS[name]
    same = described(numpys, name) == described(own, name)
    assert same == (name not in OTHERWISE), f"{name}{inspect.signature(own)} of NumPy's {inspect.signature(numpys)}"


def unexpected(function):
    """Return what Python says of a wrong keyword; "" if it finds another mistake before."""
    for args in ((np.ones(3),), (np.ones(3), np.ones(3)), ()):
        try:
            function(*args, wrong=3)
        except (TypeError, ValueError) as error:
            if "an unexpected keyword" in str(error):
                return str(error)
    return ""


def test_wrong_keyword_error_names_the_call():
    said = {id(own): (own.__qualname__, unexpected(own)) for _, own in PAIRS.values()}
    wrong = {name for name, text in said.values() if text and name not in text.partition("()")[0]}
    assert wrong == {"clip"}  # without limits it is ``positive``, in NumPy too
    assert {"std", "nanstd", "nanvar", "nanmax", "nansum", "sin", "qr"} <= {
        name for name, text in said.values() if text
    }


def test_extra_parameters_are_keyword_only():
    for name, more in MORE.items():
        for added in more:
            assert inspect.signature(PAIRS[name][1]).parameters[added].kind is inspect.Parameter.KEYWORD_ONLY, name


# ---- methods ----------------------------------------------------------------------------------------------

# Attributes about memory, which a traced value does not have; every access raises AttributeError.
MEMORY = {"base", "ctypes", "data", "flags", "strides"}
# Methods that always refuse, or that pass a constant value on to NumPy.
HANDED_ON = {
    "byteswap", "dump", "dumps", "getfield", "item", "setfield", "setflags", "tobytes", "tofile", "tolist",
}  # fmt: skip


def own_method(name):
    """Return the parameters of the tracer's method, and its keyword-only names, with ``**`` if it takes any."""
    p = list(inspect.signature(getattr(Tracer, name)).parameters.values())[1:]
    return p, {q.name for q in p if q.kind is q.KEYWORD_ONLY} | {"**" for q in p if q.kind is q.VAR_KEYWORD}


LOOKED_AT = [n for n in dir(np.ndarray) if not n.startswith("_") and n not in MEMORY | HANDED_ON | GONE]


@pytest.mark.parametrize("name", LOOKED_AT)
def test_method_signature_matches_numpy(name):
    theirs = getattr(np.ndarray, name)
    if not callable(theirs) or not has_signature(theirs):
        assert hasattr(Tracer, name)
        return
    own, keywords = own_method(name)
    for i, p in enumerate(list(inspect.signature(theirs).parameters.values())[1:]):
        if p.kind is p.KEYWORD_ONLY:
            assert p.name in keywords
        elif p.kind is p.VAR_KEYWORD:  # the further parameters of a reduction; those of view are unknown
            assert name == "view" or {"keepdims", "where", "**"} & ({q.name for q in own[i:]} | keywords)
        elif p.kind is p.POSITIONAL_ONLY or p.kind is p.VAR_POSITIONAL:
            assert own[i].kind in (p.kind, p.POSITIONAL_OR_KEYWORD)
        else:
            assert (own[i].name, own[i].default) == (p.name, p.default)


def test_new_ndarray_attributes_are_listed():
    found = []
    assert set(dir(np.ndarray)) >= MEMORY | HANDED_ON
    grad(lambda x: (found.extend(name for name in MEMORY if hasattr(x, name)), x)[1])(1.0)
    assert found == []
    assert all(hasattr(Tracer, name) for name in HANDED_ON)

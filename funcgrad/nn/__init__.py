"""Building blocks of neural networks, as pure functions of arrays.

Names and arguments agree with ``jax.nn``, ``jax.lax`` (convolution), ``jax.ops`` (segments) and ``optax.losses``.
There are no layer objects. Parameters are arguments: arrays in trees of any form.

Example:
    >>> import numpy as np
    >>> import funcgrad.nn as fnn
    >>> from funcgrad import grad
    >>> grad(lambda x: fnn.softmax_cross_entropy(x, np.array([1.0, 0.0])))(np.zeros(2))
    array([-0.5,  0.5])
"""

from funcgrad.nn import activations, attention, convolution, losses, normalisation, pooling, segments
from funcgrad.nn.activations import *
from funcgrad.nn.attention import *
from funcgrad.nn.convolution import *
from funcgrad.nn.losses import *
from funcgrad.nn.normalisation import *
from funcgrad.nn.pooling import *
from funcgrad.nn.segments import *

__all__: list[str] = []
__all__ += activations.__all__
__all__ += attention.__all__
__all__ += convolution.__all__
__all__ += losses.__all__
__all__ += normalisation.__all__
__all__ += pooling.__all__
__all__ += segments.__all__

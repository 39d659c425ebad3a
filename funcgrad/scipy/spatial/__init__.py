"""Functions of ``scipy.spatial``: distances between points, neighbors, hulls, triangulations, and rotations in space.

Example:
    >>> import numpy as np
    >>> from funcgrad import grad
    >>> from funcgrad.scipy import spatial
    >>> grad(lambda x: spatial.distance.pdist(x)[0])(np.array([[0.0, 0.0], [3.0, 4.0]]))
    array([[-0.6, -0.8],
           [ 0.6,  0.8]])
"""

from typing import Any

from funcgrad.scipy.own_code import missing_name
from funcgrad.scipy.spatial import distance, transform
from funcgrad.scipy.spatial.hulls import ConvexHull, Delaunay
from funcgrad.scipy.spatial.neighbors import KDTree, cKDTree

__all__ = ["ConvexHull", "Delaunay", "KDTree", "cKDTree", "distance", "transform"]


def __getattr__(name: str) -> Any:
    raise missing_name("spatial", name)

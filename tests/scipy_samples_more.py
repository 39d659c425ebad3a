"""Calls of the public functions of SciPy's smaller and sparse modules, see ``scipy_samples``.

From ``scipy.special`` only functions that funcgrad does not write out are here.
"""

import numpy as np
import scipy.linalg
import scipy.sparse

T = np.linspace(0.0, 1.0, 9)
S = np.array([[4.0, 0.0, 0.5, 0.0], [0.0, 3.0, 0.0, 0.2], [0.5, 0.0, 5.0, 0.3], [0.0, 0.2, 0.3, 2.0]])
PLACES = tuple(np.int32(np.nonzero(S)))  # SciPy 1.15 needs int32 for triangular systems
B = np.array([0.3, 0.2, 0.4, 0.9])


def words(text):
    return tuple(text.split())


def sparse(x, kind="csr_array"):
    """Return a sparse matrix whose numbers depend on ``x``."""
    numbers = S[PLACES] + 0.1 * np.sin(np.resize(x, PLACES[0].size) * np.arange(1, 1 + PLACES[0].size))
    return getattr(scipy.sparse, kind)(scipy.sparse.coo_array((numbers, PLACES), shape=S.shape))


def symmetric(x):
    a = sparse(x)
    return a + a.T


def lower(x):
    return scipy.sparse.csr_array(scipy.sparse.tril(sparse(x)))


def edges(x):
    """Return the lengths of the edges of a graph."""
    return np.array([[0.0, 1.0, 4.0, 0.0], [0.0, 0.0, 2.0, 5.0], [0.0, 0.0, 0.0, 1.0], [2.0, 0.0, 0.0, 0.0]]) * x


def points(x):
    return np.reshape(np.concatenate([x, np.sin(x), x**2]), (-1, 3))


def cloud(x):
    return np.stack([np.cos(np.arange(9.0)) * x[0] + x[1], np.sin(2.0 * np.arange(9.0)) * x[2] + 0.1 * x[3]], 1)


POLYNOMIALS = words("legendre chebyt chebyu chebyc chebys laguerre hermite hermitenorm sh_legendre sh_chebyt sh_chebyu")
#: Derivatives of Bessel functions, which JAX lacks.
BESSEL = words("jvp yvp ivp kvp h1vp h2vp")
SPECIAL = (
    {name: (lambda m, x, name=name: getattr(m, name)(3)(x)) for name in POLYNOMIALS}
    | {name: (lambda m, x, name=name: getattr(m, name)(x[0], x, 2)) for name in BESSEL}
    | {
        "softplus": lambda m, x: m.softplus(x),
        "genlaguerre": lambda m, x: m.genlaguerre(3, 0.5)(x),
        "gegenbauer": lambda m, x: m.gegenbauer(3, 0.5)(x),
        "jacobi": lambda m, x: m.jacobi(3, 0.5, 0.7)(x),
        "sh_jacobi": lambda m, x: m.sh_jacobi(3, 1.5, 0.7)(x),
        "eval_sh_jacobi": lambda m, x: m.eval_sh_jacobi(3, 1.5, 0.7, x),
        "assoc_laguerre": lambda m, x: m.assoc_laguerre(x, 3, 0.5),
        "diric": lambda m, x: m.diric(x, 5),
        "legendre_p": lambda m, x: m.legendre_p(3, x / 2),
        "assoc_legendre_p": lambda m, x: m.assoc_legendre_p(3, 1, x / 2),
        "sph_legendre_p": lambda m, x: m.sph_legendre_p(3, 1, x / 2),
        "legendre_p_all": lambda m, x: m.legendre_p_all(3, x / 2),
        "assoc_legendre_p_all": lambda m, x: m.assoc_legendre_p_all(2, 1, x / 2),
        "sph_legendre_p_all": lambda m, x: m.sph_legendre_p_all(2, 1, x / 2),
        "sph_harm_y_all": lambda m, x: m.sph_harm_y_all(2, 1, x[0], x[1]),
        "besselpoly": lambda m, x: m.besselpoly(x, 2, 0.5),
        "radian": lambda m, x: m.radian(x, 0.0, 0.0),
        "mathieu_a": lambda m, x: m.mathieu_a(2, x),
        "mathieu_b": lambda m, x: m.mathieu_b(2, x),
        "mathieu_cem": lambda m, x: m.mathieu_cem(2, 0.5, x)[0],
        "mathieu_sem": lambda m, x: m.mathieu_sem(2, 0.5, x)[0],
        "mathieu_modcem1": lambda m, x: m.mathieu_modcem1(2, 0.5, x)[0],
        "mathieu_modcem2": lambda m, x: m.mathieu_modcem2(2, 0.5, x)[0],
        "mathieu_modsem1": lambda m, x: m.mathieu_modsem1(2, 0.5, x)[0],
        "mathieu_modsem2": lambda m, x: m.mathieu_modsem2(2, 0.5, x)[0],
        "pro_ang1": lambda m, x: m.pro_ang1(1, 2, 0.5, x / 2)[0],
        "obl_ang1": lambda m, x: m.obl_ang1(1, 2, 0.5, x / 2)[0],
        "pro_rad1": lambda m, x: m.pro_rad1(1, 2, 0.5, x + 1)[0],
        "pro_rad2": lambda m, x: m.pro_rad2(1, 2, 0.5, x + 1)[0],
        "obl_rad1": lambda m, x: m.obl_rad1(1, 2, 0.5, x)[0],
        "obl_rad2": lambda m, x: m.obl_rad2(1, 2, 0.5, x)[0],
        "pro_cv": lambda m, x: m.pro_cv(1, 2, x),
        "obl_cv": lambda m, x: m.obl_cv(1, 2, x),
        "ellip_harm": lambda m, x: m.ellip_harm(1.0, 4.0, 2, 1, x[0] + 1),
        "ellip_harm_2": lambda m, x: m.ellip_harm_2(1.0, 4.0, 2, 1, x[0] + 3),
        "ellip_normal": lambda m, x: m.ellip_normal(x[0], 4.0, 2, 1),
        "lqn": lambda m, x: m.lqn(2, x[0] / 2)[0],
        "lqmn": lambda m, x: m.lqmn(1, 2, x[0] / 2)[0],
        "lmbda": lambda m, x: m.lmbda(2, x[0])[0],
        "riccati_jn": lambda m, x: m.riccati_jn(2, x[0])[0],
        "riccati_yn": lambda m, x: m.riccati_yn(2, x[0])[0],
        "roots_genlaguerre": lambda m, x: m.roots_genlaguerre(3, x[0])[0],
        "roots_gegenbauer": lambda m, x: m.roots_gegenbauer(3, x[0])[0],
        "roots_jacobi": lambda m, x: m.roots_jacobi(3, x[0], x[1])[0],
        "roots_sh_jacobi": lambda m, x: m.roots_sh_jacobi(3, x[0] + 1, x[1])[0],
    }
    | {name: (lambda m, x, name=name: getattr(m, name)(2.5, 1.5, *x[:2])) for name in words("ncfdtr")}
    | {
        "chndtr": lambda m, x: m.chndtr(x, 2.5, 1.2),
        "chndtrix": lambda m, x: m.chndtrix(x / 3, 2.5, 1.2),
        "nctdtr": lambda m, x: m.nctdtr(2.5, 1.2, x),
        "nctdtrit": lambda m, x: m.nctdtrit(2.5, 1.2, x / 3),
    }
)
KINDS = words("bsr coo csc csr dia dok lil")
SPARSE = {
    f"{kind}_{form}": (lambda m, x, name=f"{kind}_{form}": sparse(x, name).toarray())
    for kind in KINDS
    for form in ("array", "matrix")
} | {
    "block_array": lambda m, x: m.block_array([[sparse(x), None], [None, m.eye_array(2)]]).toarray(),
    "block_diag": lambda m, x: m.block_diag([sparse(x), x[:, None]]).toarray(),
    "bmat": lambda m, x: m.bmat([[sparse(x), None], [None, m.eye_array(2)]]).toarray(),
    "diags": lambda m, x: m.diags([x, x[:3]], [0, 1]).toarray(),
    "diags_array": lambda m, x: m.diags_array([x, x[:3]], offsets=[0, 1]).toarray(),
    "spdiags": lambda m, x: m.spdiags(np.stack([x, x * x]), [0, 1], 4, 4).toarray(),
    "expand_dims": lambda m, x: m.expand_dims(m.coo_array(x), axis=0).toarray(),
    "find": lambda m, x: m.find(sparse(x))[2],
    "hstack": lambda m, x: m.hstack([sparse(x), sparse(2 * x)]).toarray(),
    "vstack": lambda m, x: m.vstack([sparse(x), sparse(2 * x)]).toarray(),
    "kron": lambda m, x: m.kron(sparse(x), sparse(2 * x)).toarray(),
    "kronsum": lambda m, x: m.kronsum(sparse(x), sparse(2 * x)).toarray(),
    "permute_dims": lambda m, x: m.permute_dims(m.coo_array(sparse(x)), (1, 0)).toarray(),
    "swapaxes": lambda m, x: m.swapaxes(m.coo_array(sparse(x)), 0, 1).toarray(),
    "tril": lambda m, x: m.tril(sparse(x)).toarray(),
    "triu": lambda m, x: m.triu(sparse(x)).toarray(),
    "load_npz": None,
    "save_npz": None,
    "rand": None,
    "random": None,
    "random_array": None,
    "eye": None,
    "eye_array": None,
    "identity": None,
    "issparse": None,
    "get_index_dtype": None,
    "safely_cast_index_arrays": None,
}
ITERATIVE = words("bicg bicgstab cg cgs gcrotmk gmres lgmres qmr tfqmr")
SPARSE_LINALG = {
    name: (lambda m, x, name=name: getattr(m, name)(symmetric(x), B + x, rtol=1e-12, atol=0.0)[0]) for name in ITERATIVE
} | {
    "minres": lambda m, x: m.minres(symmetric(x), B + x, rtol=1e-12)[0],
    "LinearOperator": lambda m, x: m.LinearOperator((4, 4), matvec=lambda v: v * x, dtype=float) @ B,
    "LaplacianNd": None,
    "SuperLU": None,
    "aslinearoperator": lambda m, x: m.aslinearoperator(sparse(x)) @ B,
    "eigs": lambda m, x: np.sort(np.real(m.eigs(sparse(x), 2, v0=B)[0])),
    "eigsh": lambda m, x: m.eigsh(symmetric(x), 2, v0=B)[0],
    "expm": lambda m, x: m.expm(sparse(x) * 0.1).toarray(),
    "expm_multiply": lambda m, x: m.expm_multiply(sparse(x) * 0.1, B),
    "factorized": lambda m, x: m.factorized(sparse(x, "csc_array"))(B),
    "funm_multiply_krylov": lambda m, x: m.funm_multiply_krylov(scipy.linalg.expm, sparse(x) * 0.1, B),
    "inv": lambda m, x: m.inv(sparse(x, "csc_array")).toarray(),
    "lobpcg": lambda m, x: m.lobpcg(symmetric(x), np.eye(4)[:, :1], tol=1e-10, maxiter=200)[0],
    "lsmr": lambda m, x: m.lsmr(sparse(x), B, atol=1e-13, btol=1e-13)[0],
    "lsqr": lambda m, x: m.lsqr(sparse(x), B, atol=1e-13, btol=1e-13)[0],
    "matrix_power": lambda m, x: m.matrix_power(sparse(x), 3).toarray(),
    "norm": lambda m, x: m.norm(sparse(x)),
    "onenormest": lambda m, x: m.onenormest(sparse(x)),
    "spilu": None,
    "splu": lambda m, x: m.splu(sparse(x, "csc_array")).solve(B),
    "spsolve": lambda m, x: m.spsolve(sparse(x), B),
    "spsolve_triangular": lambda m, x: m.spsolve_triangular(lower(x), B),
    "svds": lambda m, x: m.svds(sparse(x), 2, v0=B)[1],
    "is_sptriangular": None,
    "spbandwidth": None,
    "use_solver": None,
}
CSGRAPH = {
    "bellman_ford": lambda m, x: m.bellman_ford(edges(x)),
    "dijkstra": lambda m, x: m.dijkstra(edges(x)),
    "floyd_warshall": lambda m, x: m.floyd_warshall(edges(x)),
    "johnson": lambda m, x: m.johnson(edges(x)),
    "shortest_path": lambda m, x: m.shortest_path(edges(x)),
    "yen": lambda m, x: m.yen(edges(x), 0, 3, 2),
    "laplacian": lambda m, x: m.laplacian(edges(x)),
    "minimum_spanning_tree": lambda m, x: m.minimum_spanning_tree(edges(x)).toarray(),
    "breadth_first_tree": lambda m, x: m.breadth_first_tree(edges(x), 0).toarray(),
    "depth_first_tree": lambda m, x: m.depth_first_tree(edges(x), 0).toarray(),
    "csgraph_from_dense": lambda m, x: m.csgraph_from_dense(edges(x)).toarray(),
    "csgraph_to_dense": lambda m, x: m.csgraph_to_dense(m.csgraph_from_dense(edges(x))),
    "construct_dist_matrix": lambda m, x: m.construct_dist_matrix(edges(x), m.dijkstra(edges(X0), True, None, True)[1]),
    "reconstruct_path": lambda m, x: m.reconstruct_path(
        m.csgraph_from_dense(edges(x)), m.breadth_first_order(edges(X0), 0)[1]
    ).toarray(),
    **dict.fromkeys(
        words(
            "breadth_first_order depth_first_order connected_components reverse_cuthill_mckee maximum_flow "
            "maximum_bipartite_matching min_weight_full_bipartite_matching structural_rank csgraph_masked_from_dense "
            "csgraph_from_masked csgraph_to_masked"
        )
    ),
}
X0 = np.array([0.62, 1.41, 0.93, 1.77])
SPATIAL = {
    "ConvexHull": lambda m, x: m.ConvexHull(cloud(x)).volume,
    "Delaunay": lambda m, x: m.Delaunay(cloud(x)).transform,
    "HalfspaceIntersection": None,
    "Voronoi": None,
    "SphericalVoronoi": None,
    "KDTree": lambda m, x: m.KDTree(cloud(x)).query(x[:2])[0],
    "cKDTree": lambda m, x: m.cKDTree(cloud(x)).query(x[:2])[0],
    "Rectangle": lambda m, x: m.Rectangle(x[:2], x[2:]).max_distance_point(B[:2]),
    "distance_matrix": lambda m, x: m.distance_matrix(points(x), points(x)[:2] + 1),
    "geometric_slerp": lambda m, x: m.geometric_slerp(np.array([1.0, 0.0]), np.array([0.0, 1.0]), x / 2),
    "minkowski_distance": lambda m, x: m.minkowski_distance(x, B),
    "minkowski_distance_p": lambda m, x: m.minkowski_distance_p(x, B),
    "procrustes": lambda m, x: m.procrustes(points(x), points(B))[1],
    "tsearch": None,
}
TRANSFORM = {
    "Rotation": lambda m, x: m.Rotation.from_rotvec(x[:3]).apply(B[:3]),
    "Slerp": lambda m, x: m.Slerp([0.0, 1.0], m.Rotation.from_rotvec(points(x)[:2]))(0.3).as_matrix(),
    "RotationSpline": lambda m, x: m.RotationSpline(T[:4], m.Rotation.from_rotvec(points(x)))(0.2).as_matrix(),
    "RigidTransform": lambda m, x: m.RigidTransform.from_translation(x[:3]).apply(B[:3]),
}
VQ = {
    "whiten": lambda m, x: m.whiten(points(x)),
    "vq": lambda m, x: m.vq(points(x), points(x)[:2] + 0.1)[1],
    "kmeans": lambda m, x: m.kmeans(cloud(x), cloud(x)[:2])[0],
    "kmeans2": lambda m, x: m.kmeans2(cloud(x), cloud(x)[:2], minit="matrix")[0],
}
LINKAGES = words("average centroid complete median single ward weighted linkage")
HIERARCHY = {name: (lambda m, x, name=name: getattr(m, name)(cloud(x))[:, 2]) for name in LINKAGES} | {
    "cophenet": lambda m, x: m.cophenet(m.linkage(cloud(x))),
    "inconsistent": lambda m, x: m.inconsistent(m.linkage(cloud(x)))[:, 0],
    "maxdists": lambda m, x: m.maxdists(m.linkage(cloud(x))),
}
TABLE = {
    "scipy.special": SPECIAL,
    "scipy.sparse": SPARSE,
    "scipy.sparse.linalg": SPARSE_LINALG,
    "scipy.sparse.csgraph": CSGRAPH,
    "scipy.spatial": SPATIAL,
    "scipy.spatial.transform": TRANSFORM,
    "scipy.cluster.vq": VQ,
    "scipy.cluster.hierarchy": HIERARCHY,
}
REFUSED = {
    "scipy.special": words(
        "besselpoly mathieu_a mathieu_b mathieu_cem mathieu_sem mathieu_modcem1 mathieu_modcem2 mathieu_modsem1 "
        "mathieu_modsem2 pro_ang1 obl_ang1 pro_rad1 pro_rad2 obl_rad1 obl_rad2 pro_cv obl_cv ellip_harm ellip_harm_2 "
        "ellip_normal lqn lqmn lmbda riccati_jn riccati_yn"
    ),
}

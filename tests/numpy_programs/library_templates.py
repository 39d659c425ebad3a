"""Templates of random programs: functions of NumPy and SciPy. ``random_programs`` says what the letters are."""

NUMBERS = """
np.add.reduce({v})|np.multiply.reduce({v}, initial={s}, where=[True, False, True, True]) * 0.3|np.logaddexp.reduce({v})
np.maximum.reduce({m}, axis=None) * 0.3|np.hypot.reduce({v}, initial=0.3)|np.subtract.reduce({v})
np.true_divide.reduce([{s}, 2.0, 3.0])|np.sum({v}, where={v} > {c}, initial={s})
np.mean({v}, where=[True, True, False, True])|np.max({v}, where={v} > {c}, initial=-0.3)
np.std({v} + np.arange(4), ddof=1)|np.var({v}, where=[1, 1, 0, 1] == np.ones(4))|np.ptp({v})
np.average({v}, weights=[1, 2, 3, {s} ** 2 + 1])|np.percentile({v}, 63.0)
np.quantile({v}, [0.2, 0.7], method="hazen")[0]|np.nanmedian({v})|np.nanmean([np.nan, {s}, {s}])
np.corrcoef({v}, {v} ** 2 + np.arange(4))[0, 1]|np.linalg.slogdet({m} * 0.1 + 2 * np.eye(4))[1]
np.linalg.svd({m} * 0.2 + np.diag([1.0, 2, 3, 4]))[1][0] * 0.3
np.linalg.svd({m} * 0.2 + np.diag([1.0, 2, 3, 4]), compute_uv=False).min()
np.linalg.cond({m} * 0.1 + np.diag([1.0, 2, 3, 4])) * 0.1|np.linalg.norm({m} + np.eye(4), "fro") * 0.3
np.linalg.norm({m} * 0.1 + np.diag([1.0, 2, 3, 4]), "nuc") * 0.1
np.linalg.norm({m} * 0.3 + np.diag([1.0, 2, 3, 4]), 2) * 0.2|np.linalg.norm({m}, 1) * 0.2
np.linalg.norm({v} + 0.23, ord=3)|np.linalg.norm({v} + 0.013, np.inf)|np.linalg.matrix_power({m} * 0.3, 3)[1, 2]
np.linalg.vector_norm({v} + np.arange(1, 5) * 0.37)|np.einsum("ij,jk,k->", {m}, {m}, {v}, optimize="greedy") * 0.05
np.einsum({m}, [0, 1], {v}, [1], []) * 0.1|np.einsum("i,i", {v}, {v})|np.einsum("ij,ji", {m}, {m}) * 0.1
np.tensordot({m}, {m}, axes=([0, 1], [1, 0])) * 0.1|np.tensordot({v}, {v}, 1).item()|np.inner({v}, {v})
np.vecdot({v}, {v})|np.cross({v}[:3], {v}[1:])[1]|np.trapezoid({v}, x=[0.0, 0.3, 0.7, 1.1])
np.polynomial.Polynomial({v})({s} * 0.3)|np.polynomial.Polynomial({v}).deriv()({s} * 0.3)
np.polynomial.Chebyshev({v}).integ()(0.4)|np.polynomial.chebyshev.chebval({s} * 0.2, {v})
(np.polynomial.Polynomial({v}) * np.polynomial.Polynomial([{s}, 1.0])).coef[2] * 0.3
np.polynomial.Legendre({v}).convert(kind=np.polynomial.Polynomial).coef[0]
np.polynomial.Polynomial.fit([0, 1, 2, 3.0], {v}, 2)({s} * 0.3)|np.polynomial.Polynomial.fromroots({v})(0.2) * 0.2
np.poly1d([1.0, *{v}])({s} * 0.3)|np.polyval(np.polyder({v}), 0.3)|np.polyval(np.polyint({v}), 0.3)
np.polymul({v}, [{s}, 1.0])[2]|np.polydiv([1.0, *{v}], [1.0, 0.3])[1][0]|np.poly1d([1.0, {s}]).integ()(0.5)
(np.poly1d([1.0, *{v}]) ** 2).c[1] * 0.2
np.real(np.roots([1.0, 0.0, {s} ** 2 + 1.0])[0]) + np.abs(np.roots([1.0, 0.3, {s} ** 2 + 1.0])).sum()
np.interp({s}, [-1.0, 0.5, 1.5], [0.1, {s}, 0.7], period=3.0)|np.interp(0.37, {v} * 0.0 + np.arange(4), {v})
np.histogram({v} * 0.01, bins=3)[0].sum() * {s}
np.histogram2d([0.1, 0.7, 0.2, 0.9], [0.3, 0.1, 0.8, 0.9], bins=2, weights={v})[0][0, 1]
np.digitize({s}, [-1.0, 0.0, 1.0]) * {s}|np.unwrap({v} * 3.0)[-1] * 0.3|np.angle(np.exp(1j * {s}))
np.real_if_close({s} * (1 + 1e-18j))|np.float64(complex({s}, 0.3).real)|np.abs(np.fft.rfft({v})[1])
np.fft.irfft(np.fft.rfft({v}) * [1, {s}, 0.3])[2]|np.abs(np.fft.fft2({m})[1, 2]) * 0.1
np.fft.hfft({v} + 0.1j, 6)[1] * 0.1|np.trace({m}, offset=1)|np.count_nonzero({v} > {c}) * {s}
np.vdot({v} + 1j * {s}, {v}).imag|np.nan_to_num([{s}, np.nan, np.inf], posinf=0.3)[:2].sum()|records({v}, {s})
record_array({v}, {s})|objects({v}, {s})|parts_written({v}, {s})|enumerated({m}) * 0.3|masked({v}, {s}, {c})
counted({v}, {s})[1]|fixed({s})|events({s})|gridded({m}, {s}, {v}) * 0.3|gridded({m}, {s}, {v}, "slinear") * 0.3
mixture({v}, {s})|likelihood({v}, {s})|kalman({v}, {s})|np.array([{s}, {s}], dtype=object).sum()
np.dot(np.array([{s}, 0.3], object), [{s}, 2.0])|np.ma.masked_greater({v}, 1.7).mean()
np.ma.median(np.ma.array({v}, mask=[0, 0, 1, 0]))|np.ma.masked_invalid([{s}, np.nan, {s} + 7.3]).std() + 0.1 * {s}
np.ma.array({v}, mask=[0, 1, 0, 0]).compressed()[1]|np.frompyfunc(lambda a, b: a * b + 0.1, 2, 1).reduce({v})
np.modf({s})[0] + np.frexp({s})[0]|np.divmod({s}, 0.713)[1]|np.fmod({s}, 0.713)|np.remainder({s}, -0.713)
np.float_power(abs({s}) + 0.1, {s})|np.heaviside({s}, 0.5) * {s}|np.sinc({s})|np.i0({s})|np.copysign({s}, -1.0)
np.logaddexp2({s}, {s})|np.cbrt({s} + 3.0)|np.ldexp({s}, 2)|np.nextafter({s}, 9.0)|np.spacing(1.0) + {s}|np.exp2({s})
np.deg2rad({s})|np.float32(0.5) * {s}|np.int64(3) * {s}|{s} ** np.int8(2)|np.uint8(3) * {s}|np.bool_(True) * {s}
np.asarray({s}, dtype=np.float64) + 0|np.array({s}, ndmin=2)[0, 0]|np.arange(4).astype(float) @ {v} * 0.2
np.full(4, 2) @ {v}|([1, 2, 3, 4] * {v}).sum() * 0.1|np.arange(1, 5) ** {s} @ [0.1, 0.1, 0.1, 0.1]
np.ones(4, int).dot({v})|integrate.quad(lambda t, a, b: math.exp(-a * a * t) * b, 0, 1, args=({s}, {s}))[0]
integrate.quad(lambda t: 1 / (1 + t * t), {s}, {s})[0]|integrate.quad(lambda t: math.exp(-t * t), -np.inf, {s})[0]
integrate.simpson({v}, dx=0.3)|integrate.simpson({v}, x=[0.0, 0.4, 0.7, 1.2])
integrate.dblquad(lambda y, z: z * y + y, 0, 1, 0, lambda z: z * 0.7)[0] * {s}
integrate.fixed_quad(lambda t: np.sin(t * {s}), 0, 1, n=4)[0]|integrate.romb([{s}, *{v}], dx=0.2)
integrate.trapezoid({v}, dx=0.2)|integrate.quad_vec(lambda t: np.sin(t * {v}), 0, 1)[0].sum()
optimize.brentq(lambda t, a: t**3 + t - a, -9, 9, args=({s},))
optimize.root_scalar(lambda t: t + 0.3 * math.sin(t) - {s}, bracket=(-9, 9)).root
optimize.minimize_scalar(lambda t: (t - {s}) ** 2 + 0.1 * t**4, tol=1e-12).x
optimize.minimize_scalar(lambda t: (t - {s}) ** 2 + 0.3 * t**4, bounds=(-5, 5), method="bounded").fun
optimize.minimize(lambda p: (p[0] - {s}) ** 2 + (p[1] - p[0]) ** 2, [0.0, 0.0]).fun + {s}
optimize.bisect(lambda t: t + math.tanh(t) - {s}, -9, 9, xtol=1e-13)|optimize.nnls(np.eye(4) + 0.1, {v} ** 2 + 1)[0][1]
interpolate.lagrange([0, 1, 2, 3.0], {v})(0.37) + 0|interpolate.interp1d([0, 1, 2, 3.0], {v})(1.37).item()
float(interpolate.interp1d([-9, 0, 9.0], [{s}, 0.3, 0.5], kind="quadratic")({s}))
interpolate.CubicSpline([0, 1, 2, 3.0], {v}, bc_type="natural").integrate(0, 2) + 0
interpolate.CubicSpline([0, 1, 2, 3.0], {v}).derivative()({s} * 0.1 + 1) + 0
interpolate.CubicHermiteSpline([0, 1.0], {v}[:2], {v}[2:])(0.37) + 0
interpolate.PchipInterpolator([0, 1, 2, 3.0], {v}).antiderivative()(1.7) + 0
interpolate.BSpline([0, 0, 0, 1, 2, 2, 2.0], {v}, 2)(1.3) + 0
interpolate.UnivariateSpline([0, 1, 2, 3.0], {v}, k=2, s=0).integral(0, 2) + 0|stats.norm({s}, 1.2).pdf({s})
stats.beta.cdf(special.expit({s}), 2.0, {s} ** 2 + 1)|stats.t.logpdf({s}, df=4, loc={s})
stats.poisson.logpmf(3, {s} ** 2 + 1)|stats.expon(scale={s} ** 2 + 1).sf(0.7)|stats.lognorm.pdf({s} ** 2 + 0.3, 0.9)
stats.weibull_min(1.5).ppf(special.expit({s}))|stats.binom.pmf(2, 5, special.expit({s}))
stats.gamma({s} ** 2 + 1).entropy() * 0.3|stats.uniform(-9, 18).logpdf({s}) + {s}|stats.skew({v} + np.arange(4))
stats.gmean({v} ** 2 + 0.3)|stats.kurtosis({v} + np.arange(4)) * 0.3|stats.trim_mean({v}, 0.25)
stats.sem({v} + np.arange(4))|stats.pearsonr({v}, [0.1, 0.3, 0.2, 0.9])[0]|stats.linregress([0, 1, 2, 3.0], {v}).slope
stats.ttest_ind({v}, {v} * 0.5 + 0.3)[0] * 0.2|stats.entropy(np.abs({v}) + 0.1)
stats.gaussian_kde([0.1, 0.7, 1.3])({s})[0]|stats.truncnorm.logpdf(0.3, -1 - {s} ** 2, 2.0)
stats.multivariate_normal.logpdf({v}, np.zeros(4), np.eye(4) + 0.3) * 0.1|stats.vonmises.logpdf({s}, 1.3)
stats.iqr({v})|stats.median_abs_deviation({v})|stats.boxcox_llf({s} * 0.3, [1.0, 2.0, 3.5])
signal.savgol_filter(np.r_[{v}, {s}], 5, 2)[2]|signal.convolve({v}, [1, {s}, 0.3])[2]
signal.fftconvolve({v}, {v}, "same")[1] * 0.3|signal.detrend({v})[1]
signal.sosfilt(signal.butter(2, 0.3, output="sos"), {v})[-1]|signal.filtfilt([0.5, 0.5], [1.0], np.r_[{v}, {v}])[3]
signal.hilbert({v}).imag[1]|signal.correlate({v}, {v})[2] * 0.3|signal.resample({v}, 6)[2]
signal.freqz({v})[1][3].real * 0.2|signal.lfilter([1.0], [1.0, special.expit({s}) * 0.5], {v})[-1]
signal.windows.gaussian(5, {s} ** 2 + 1)[0]|scipy.spatial.distance.euclidean({v}, {v} * 0.3)
scipy.spatial.distance.cosine({v}, {v} ** 2)|scipy.spatial.distance.pdist({m} + np.eye(4))[2]
scipy.spatial.distance.cdist({m}, np.eye(4), "sqeuclidean")[1, 2] * 0.1
scipy.spatial.distance.mahalanobis({v}[:2], [0.1, 0.2], np.eye(2) + 0.3)
scipy.spatial.transform.Rotation.from_rotvec({v}[:3]).as_matrix()[0, 1]
scipy.spatial.distance.cityblock({v}, [0.11, 0.2, 0.3, 0.4])|special.gammaln({s} ** 2 + 0.3)
special.digamma({s} ** 2 + 0.3)|special.beta({s} ** 2 + 1, 2.0)|special.hyp2f1(0.3, 0.7, 1.3, {s} * 0.2)
special.ellipk(special.expit({s}) * 0.8)|special.erfinv(np.tanh({s}) * 0.9)
special.betainc(1.3, 2.0, special.expit({s}))|special.gammainc(1.3, {s} ** 2 + 0.1)
special.lambertw({s} ** 2 + 0.1).real|special.xlogy({s} ** 2, {s} ** 2 + 0.3)|special.ndtr({s})
special.ndtri(special.expit({s}))|special.log_ndtr({s})|special.j0({s})|special.yv(0.5, {s} ** 2 + 0.4)
special.kv(0.3, {s} ** 2 + 0.3)|special.eval_legendre(3, {s} * 0.3)|special.eval_chebyt(2, {s})
special.zeta({s} ** 2 + 1.5)|special.airy({s})[0]|special.fresnel({s})[0]|special.sici({s} ** 2 + 0.2)[0]
special.expi({s} ** 2 + 0.2) * 0.2|special.dawsn({s})|special.boxcox({s} ** 2 + 0.3, 0.4)|special.huber(0.711, {s})
special.rel_entr({s} ** 2 + 0.1, 0.4)|special.softmax({v})[1]|special.log_softmax({v})[2]
special.logit(special.expit({s}) * 0.9)
special.sph_harm_y(2, 1, 0.3, {s}).real + 0 if hasattr(special, "sph_harm_y") else {s}|special.legendre(3)({s} * 0.3)
special.entr(special.expit({s}))|ndimage.map_coordinates({m}, [[1.2], [0.7]], order=3)[0] * 0.3
ndimage.convolve({m}, np.ones((3, 3)) * 0.1)[1, 2]|ndimage.correlate1d({v}, [0.3, {s}, 0.1])[2]
ndimage.laplace({v})[1] * 0.3|sparse_made({v})[1] * 0.3
(sparse.csr_array(({v}, [0, 1, 2, 0], [0, 2, 4])) @ np.arange(3.0))[1]|scipy.linalg.det({m} * 0.1 + np.eye(4))
scipy.linalg.sqrtm({m} @ {m}.T * 0.1 + np.eye(4))[0, 1]|scipy.linalg.norm({v} + np.arange(1, 5) * 0.37)
scipy.linalg.toeplitz({v})[1, 3] + 0|scipy.linalg.logm({m} @ {m}.T * 0.1 + np.eye(4))[1, 1]
scipy.linalg.cho_solve(scipy.linalg.cho_factor({m} @ {m}.T * 0.1 + np.eye(4)), {v})[1]
scipy.linalg.solve_toeplitz([5.0, {s}, 0.3, 0.1], {v})[2]|scipy.linalg.circulant({v})[1, 2]
scipy.linalg.block_diag({s}, [[{s}, 0.3]])[1, 2] * {s}|scipy.linalg.cosm({m} * 0.2)[0, 1]
scipy.linalg.null_space(np.ones((1, 4)) + 0.0 )[0, 0] ** 2 + {s}
scipy.linalg.eigh({m} + {m}.T + np.diag([0.0, 3, 6, 9]), eigvals_only=True)[1] * 0.2
scipy.linalg.expm(np.array([[0.0, {s}], [-{s}, 0.1]]))[0, 1]
scipy.linalg.solve_sylvester({m} * 0.1 + 2 * np.eye(4), np.eye(4), {m})[1, 1] * 0.3
scipy.linalg.solve_continuous_lyapunov({m} * 0.1 + 2 * np.eye(4), np.eye(4))[0, 1]
scipy.linalg.svdvals({m} * 0.2 + np.diag([1.0, 2, 3, 4]))[1]
scipy.linalg.eigvals({m} * 0.1 + np.diag([1.0, 2, 3, 4])).real.max()|scipy.linalg.polar({m} * 0.1 + np.eye(4))[1][0, 1]
"""
VECTORS = """
np.multiply.accumulate({v})|np.add.reduceat(np.r_[{v}, {v}], [0, 2, 4, 5]) * 0.5|np.subtract.outer({v}, {v})[1]
np.minimum.accumulate({v})|np.add.accumulate({v}, out=np.empty(4)) * 0.3|np.sqrt({v}, where={v} > 0.1, out={v} * 0.5)
np.divide({v}, {v} + 3.0, out=np.zeros(4), where={v} > {c})
np.log(np.abs({v}) + 0.3, where=[True, False, True, True], out=np.full(4, 0.3))
np.add({v}, {v}, dtype=np.float64, casting="unsafe")|np.add({v}, [1, 2, 3, 4], dtype=float)
np.cumsum({v}, dtype=float) * 0.4|np.cumprod({v})|np.modf({v})[0]|np.divmod({v}, 0.731)[1]
np.multiply({v}, {s}, where={v} > {c}, out={v}.copy())|np.where({v} > {c}, 0.3, {v})|np.where([1, 0, 0, 1], {v}, {s})
np.compress([1, 1, 1, 1], {v})|np.extract([1, 1, 1, 1], {v})|np.take_along_axis({m}, np.argsort({m}, axis=1), 1)[2]
np.take({v}, [5, 0, -1, 2], mode="wrap")|np.resize({v}[:3], 4)|np.rot90({m})[1]|np.roll({m}, (1, 1), (0, 1))[0]
np.moveaxis({m}, 0, 1)[2]|np.trim_zeros(np.r_[0.0, {v} + 0.0, 0.0])|np.unwrap({v} * 2.0) * 0.3
np.interp([0.3, 1.1, 1.9, 2.6], np.arange(4), {v}, period=4)|np.interp({v}, [-2.0, 0.1, 1.3, 3.0], {v})
np.ediff1d({v}, to_end={s})|np.histogram([0.1, 0.3, 0.6, 0.9], bins=4, range=(0, 1), weights={v})[0]
np.bincount([0, 1, 1, 3], {v} * {s})|{v}[np.digitize([0.1, 0.6, 0.3, 0.9], [0.2, 0.4, 0.8])]
np.unique_values(np.arange(4)) * {v}|np.convolve({v}, [{s}, 0.3])[:4]|np.correlate({v}, {v}, "full")[2:6] * 0.3
np.pad({v}[1:3], 1, mode="reflect", reflect_type="odd")|np.pad({v}[:2], (1, 1), "linear_ramp", end_values={s})
np.pad({v}[:2], 1, constant_values={s})|np.pad({v}[:2], (0, 2), "mean")|np.pad({v}[:3], (1, 0), "wrap")
np.pad({v}[:3], (0, 1), "symmetric")|np.pad({v}[:2], 1, "maximum")
np.linalg.eigh({m} + {m}.T + np.diag([0.0, 3, 6, 9]))[0] * 0.2|np.linalg.pinv({m} * 0.1 + np.eye(4)) @ {v}
np.linalg.cholesky({m} @ {m}.T * 0.1 + np.eye(4))[2]|np.linalg.solve({m} * 0.05 + 2 * np.eye(4), {m})[1]
np.linalg.eigvals({m} * 0.1 + np.diag([1.0, 2, 3, 4])).real
np.abs(np.linalg.qr({m} * 0.1 + np.eye(4), mode="r")).sum(1)|np.linalg.lstsq({m} * 0.1 + np.eye(4), {v})[0]
np.linalg.tensorsolve(np.eye(4) * 2 + {m} * 0.1, {v})|np.matvec({m}, {v}) * 0.2 if hasattr(np, "matvec") else {v}
np.einsum("ij,jk,k->i", {m}, {m}, {v}, optimize=True) * 0.1|np.einsum("ij->j", {m}) * 0.3
np.einsum("...i,...i->...", {m}, {v}) * 0.2|np.einsum("ii->i", {m}) + 0|np.tensordot({m}, {v}, axes=1) * 0.2
np.kron({v}[:2], [{s}, 1.0])|np.inner({m}, {v}) * 0.2|np.fft.irfft(np.fft.rfft({v}))|np.fft.fftshift({v}) + 0
np.fft.ifftshift({v})|np.fft.fftn({m}).real[1] * 0.1|np.abs(np.fft.rfft2({m})[:, 1]) * 0.1
np.fft.ifft(np.fft.fft({v}, 8)[:4]).real|np.polynomial.polynomial.polyfromroots({v}[:3])
np.polynomial.Polynomial({v}).linspace(4, (0, 1))[1]|np.polynomial.chebyshev.cheb2poly({v})
np.polynomial.hermite_e.hermeval({v} * 0.3, {v})|np.vander({v}, 3)[:, 0] * 0.3|np.poly({v})[:4] * 0.3
np.polyfit([0, 1, 2, 3.0], {v}, 3)|np.geomspace(0.1 + {s} ** 2, 2.0, 4)|np.logspace(0, {s}, 4) * 0.3|np.arange(4) * {s}
np.linspace({s}, 2, 4, endpoint=False)|strided({v}) * 0.4|windows_written({v}, {s})|iterated({v}, {s})|thomas({v})
eliminated({m}, {v})|factored({m})[3]|decomposed({m})|banded({v}, {s})|inner_root({v}, {s}).repeat(2)
np.tile(inner_minimum({v}, {s}), 2)|inner_fit({v}).repeat(2)|np.array([*inner_curve_fit({v}), {s}, 0.3])
np.r_[pendulum({s}, {v}), 0.3, {s}]|decay({s}, {v})|assembled({v}, {s}) * 0.3|resampled({v}, "pchip")
resampled({v}, "akima")|resampled({v}, "linear")|resampled({v}, "cubic")|resampled({v}, "barycentric")
resampled({v}, "krogh")|resampled({v}, "spline")|resampled({v}, "make")|resampled({v}, "rep")|resampled({v}, "radial")
moved({m}, {s})|filtered({v}, {s})|spectrum({v}, {s})|sparse_solved({v}, {s})|sparse_made({v}) * 0.3
counted({v}, {s}).repeat([1, 2, 1])|np.piecewise({v}, [{v} < {c}, {v} >= {c}], [0.3, lambda t: t * 0.5])
scipy.fft.dct({v}, norm="ortho")|scipy.fft.idst({v}) * 0.3|scipy.fft.rfft({v}).real[[0, 1, 2, 0]] * 0.3
ndimage.zoom({v}, 1.0, order=1)|ndimage.shift({v}, 0.4, order=3)|ndimage.gaussian_filter({m}, 0.8)[1]
ndimage.median_filter({v}, 3)|ndimage.maximum_filter1d({v}, 3)|ndimage.convolve1d({v}, [0.3, {s}, 0.2], mode="wrap")
ndimage.sobel({m})[2] * 0.2|ndimage.rotate({m}, 30.0, reshape=False, order=1)[1]
ndimage.sum_labels({v}, [1, 1, 2, 2], [1, 2, 1, 2])|special.gamma({v} ** 2 + 1) * 0.3|special.erf({v})
special.jv([0, 1, 2, 3], {v})|special.comb(4, [0, 1, 2, 3]) * {v} * 0.2|special.polygamma(1, {v} ** 2 + 0.7)
stats.norm.cdf({v}, loc={s})|stats.rankdata({v}) * {v} * 0.3|stats.norm.ppf(special.expit({v}))
stats.expon.logpdf({v} ** 2, scale={s} ** 2 + 0.5)|stats.dirichlet.mean(np.abs({v}) + 0.3)
scipy.linalg.solve({m} * 0.1 + 2 * np.eye(4), {v}, assume_a="gen")|scipy.linalg.toeplitz({v}) @ {v} * 0.3
scipy.linalg.hankel({v})[1] + 0|scipy.linalg.solveh_banded([[0.0, 0.3, 0.3, 0.3], np.full(4, 2.0 + {s} ** 2)], {v})
scipy.linalg.expm({m} * 0.1) @ {v} * 0.3|scipy.linalg.lstsq({m} * 0.1 + np.eye(4), {v})[0]
scipy.linalg.solve_circulant([3.0, {s}, 0.1, 0.2], {v})
sparse.linalg.cg(sparse.csr_array(np.eye(4) * 2 + 0.1), {v}, rtol=1e-13)[0]
sparse.linalg.spsolve(sparse.csc_array(np.eye(4) * 2 + 0.1), {v})|sparse.linalg.expm_multiply(np.eye(4) * 0.3, {v})
(sparse.eye_array(4) * {s} @ {v})|(np.float32([0.5, 0.25, 1.5, 2.0]) * {v})|np.array([1, {s}, 2, 3])
np.array([[1, 2], [3, {s}]]).ravel()|np.arange(4, dtype=np.int8) * {v} * 0.3|np.asarray({v}, dtype=complex).real
{v}.astype(np.float64, copy=False) + 0|({v} + 0j).view(float)[::2]|np.ma.masked_outside({v}, -1.03, 1.51).filled({s})
np.ma.where({v} > {c}, {v}, {s}).data|(np.ma.array({v}, mask=[0, 1, 0, 0]) * {s}).filled(0.3)
np.ma.array({v}, mask=[0, 1, 0, 0]).anom().filled(0.1)|np.array([*{v}], dtype=object).astype(float)
np.stack(({v}, {v}), axis=1).sum(1) * 0.4|np.dstack(({v}, {v}))[0, :, 1]|np.array_split({v}, 3)[0].repeat(2)
np.unstack(np.stack([{v}, {v}]))[1] if hasattr(np, "unstack") else {v}|np.broadcast_to({v}, (2, 4)).sum(0) * 0.4
np.hsplit({m}, 2)[1][:, 0]|np.nan_to_num({v}) + 0|np.cross({v}[:3], {v}[1:]).repeat([1, 1, 2])
np.mgrid[0:4] * {s} * 0.3|np.c_[{v}, {v}][:, 1]|np.s_[{v}][::-1] * 0.5|np.squeeze({v}[None]) + 0
np.swapaxes({m}, 0, 1)[1]|np.atleast_2d({v})[0] * 0.5|np.nancumsum({v}) * 0.3
"""
MATRICES = """
np.subtract.outer({v}, {v})|np.multiply.outer({v}, {v}) * 0.5|np.hypot.outer({v}, {v} + 0.1)|np.rot90({m}, k=3)
np.flipud({m}) * 0.7|np.triu({m}, 1)|np.pad({m}[:2, :2], 1, "reflect", reflect_type="odd")
np.pad({m}[:2, :2], ((2, 0), (0, 2)), "edge")|np.pad({m}[1:3, 1:3], 1, constant_values={s})
np.linalg.matrix_power({m} * 0.4, 2)|np.linalg.cholesky({m} @ {m}.T * 0.1 + np.eye(4))
np.linalg.qr({m} * 0.1 + np.diag([1.0, 2, 3, 4]))[1]|np.tensordot({m}, {m}, 1) * 0.2
(np.einsum("ij,kj->ik", {m}, {m}) * 0.2).copy()|np.fft.ifft2(np.fft.fft2({m}) * np.exp(1j * {s})).real
np.fft.fftshift({m}) + 0|np.cumprod({m}, axis=1) * 0.3|np.gradient({m}, axis=0) * 0.5
np.diff({m}, axis=0, prepend={m}[:1])|red_black({m}, {s})|factored({m})|np.vander({v}) * 0.1|np.diagflat({v}) * {s}
np.linalg.outer({v}, {v}) * 0.5|np.cov({m}) * 0.3|np.apply_along_axis(np.cumsum, 1, {m}) * 0.3
np.fromfunction(lambda i, j: i * {s} + j * 0.1, (4, 4)) * 0.3|np.tri(4) * {m}
np.array(np.broadcast_arrays({v}, {v}[:, None])[1])
np.lib.stride_tricks.sliding_window_view(np.r_[{v}, {v}[:3]], 4)[[0, 1, 2, 3]]|scipy.linalg.toeplitz({v}) * 0.5
scipy.linalg.expm({m} * 0.1) * 0.3|scipy.linalg.inv({m} * 0.05 + 2 * np.eye(4))
scipy.linalg.cholesky({m} @ {m}.T * 0.1 + np.eye(4), lower=True).copy()
scipy.spatial.distance.cdist({m}, {m} + np.eye(4), "cityblock") * 0.1|ndimage.gaussian_filter({m}, 0.7)
ndimage.zoom({m}[:2, :2], 2, order=1)|ndimage.shift({m}, (0.3, 0.0), order=1, mode="nearest")
(signal.convolve2d({m}, np.array([[0.1, {s}], [0.3, 0.2]]), mode="same") * 0.4).copy()
(sparse.diags_array([{v}], offsets=[0]) + sparse.eye_array(4)).toarray().copy()
np.array([*map(np.array, {m}.tolist())])|np.matrix(np.eye(4)).A * {s}
"""
WRITES = """
np.put({a}, [5, 1], [{s}, {s}], mode="wrap")|np.place({a}, {a} > {c}, [{s}, 0.3])|np.copyto({a}, {s}, where={a} < {c})
np.putmask({a}, {a} > {c}, {v})|np.put_along_axis({a}, np.array([2, 0]), {v}[:2], 0)
np.multiply.at({a}, [0, 0, 2], {s})|np.subtract.at({a}, slice(1, 3), {v}[:2])|np.maximum.at({a}, [1, 1, 3], {v}[:3])
np.negative.at({a}, [0, 2])|np.divide.at({a}, [1], {s} ** 2 + 1)|np.add.at({a}, ..., {s})
np.add({a}, {v}, out={a}, where=[True, False, True, False])|np.exp({a} * 0.3, out={a}[...])
np.multiply({a}[1:], {a}[:-1], out={a}[1:])|np.add.accumulate({a} * 0.5, out={a})
np.add.reduce({m} * 0.2, axis=0, out={a})|np.divmod({a}, 0.737, out=(np.empty(4), {a}))|np.modf({a}, np.empty(4), {a})
np.take({v}, [1, 0, 3, 2], out={a})|np.choose([0, 1, 1, 0], [{v}, {v}], out={a})|np.clip({a}, None, {s}, out={a})
{a}.clip(-0.91, 1.3, out={a})|{v}.mean(out={a}[1:2].reshape(()))
{a}.itemset(1, {s}) if hasattr({a}, "itemset") else None|{a}.__setitem__(slice(1, 3), {s})
{a}[[True, False, False, True]] = {v}[:2]|{a}[np.array([3, 0])] -= {v}[:2]|{a}[..., None][1:3] = {s}
{a}[None][:, 1] *= {s}|{a}[::-2] = {v}[2:]|{a}[-1:] += {a}[0]|{a}[::-1][:2] = {a}[:2]|{a}.T[1:] -= {s}
{a}.reshape(2, 2)[:, ::-1][0] *= {v}[:2]|{a}.reshape(-1, 1)[:, 0][::2] = {s}|{a}.swapaxes(0, 0)[2] = {s}
np.swapaxes({a}[None], 0, 1)[0] = {s}|np.flip({a})[1] = {s}|np.moveaxis({a}[None], 0, 1)[1] += {s}
np.squeeze({a}[None])[0] = {s}|np.expand_dims({a}, 0)[0, 1:] *= 0.7|np.broadcast_to(0.3, 4); {a}[2:] **= 2|{a}[1] **= 2
{a} //= 0.0 + 1.0; {a} += {v}|{a} %= 1.371|{a}[0], {a}[1], {a}[2] = {a}[1], {a}[2], {s}
{a}[:2] = {s}, {s}; {a}[0] += 0.1|{a}[1:3], {n} = {a}[2:].copy(), {s}; {a}[0] -= {n}|{n} = {a}[1:]; {n} += {a}[:-1]
{n} = {a}[::2]; {n}[:], {a}[1::2] = {a}[1::2].copy(), {n}.copy()
{n} = {a}.astype(complex); {n}.real[1] = {s}; {n}.imag += {v}; {a}[:] = np.abs({n} + 0.1)
{n} = {a} + 1j * {v}; {n}[::2] *= 1j; {n}.imag[0] = {s}; {a}[:] = {n}.real
{n} = np.zeros(2, complex); {n}.view(float)[:] = {a}; {a}[:2] = np.abs({n} + 2.5)
{n} = np.zeros(4, [("u", float), ("w", float)]); {n}["u"] = {a}; {n}["w"][1:] = {s}; {a}[:] = {n}["u"] + {n}["w"]
{n} = np.ma.array({a}, mask=[0, 1, 0, 0]); {n} *= {s}; {a}[:] = {n}.filled(0.3)
{n} = np.empty(4, object); {n}[:] = {a}; {n}[1] *= {s}; {a}[:] = {n}
{n} = np.zeros(4, int); {n}[1] = 3; {a} += {n} * {s}|{n} = np.zeros(4, np.float32); {n} += 0.5; {a} *= {n}
{n} = np.array([1, 2, 3, 4]).astype(float); {n}[1] = {s}; {a} -= {n} * 0.1
{n} = {a}.copy(order="F"); {n}[1] = {s}; {a}[:3] = {n}[1:]|{n} = np.array({a}, copy=None); {n}[2] = {s}
{n} = np.ascontiguousarray({a}); {n}[2] *= {s}|{n} = np.require({a}, float, "W"); {n}[0] += {s}
{n} = np.atleast_1d({a}); {n}[1] -= {s}|{n} = np.ravel({a}); {n}[0] = {s}
{n} = {a}.flat; {n}[1:3] = {s}; {n}[[0, 3]] = {v}[:2]
{n} = iter({a}.reshape(2, 2)); next({n})[:] = {s}; next({n})[1] *= 0.5
for {n} in {a}.reshape(2, 2): {n} -= {n}.mean(); {n}[0] = {s}
for {n} in np.ndindex(2, 2): {a}.reshape(2, 2)[{n}] += {s} * {n}[0]
for {n}, {n}e in np.ndenumerate({a}): {a}[{n}] = {n}e * 0.5 + {s}
for {n} in range(1, 4): {a}[{n}] += 0.5 * {a}[{n} - 1] * {s}
for {n} in reversed(range(3)): {a}[{n}] = 0.6 * {a}[{n} + 1] + 0.1 * {a}[{n}]
for {n} in range(4): {a}[{n}], {a}[-{n}] = {a}[-{n}], {a}[{n}]|{a}[:] = iterated({a}, {s})
np.random.default_rng(2).permuted({a}, out={a})|{a}.resize(4, refcheck=False); {a}[0] = {s}
{a}[np.nonzero({a} > {c})] = {s}|{a}[np.flatnonzero({a} > {c})] *= 0.5|{a}[~({a} > {c})] -= {s} * 0.3
{a}[({a} > {c}) & ({a} < 1.71)] = 0.5|{a}[np.argmax({a})] = {s}|{a}[np.argpartition({a}, 2)[:2]] *= 0.7
{a}[{a}.argsort()[::-1][:2]] = {v}[:2]|{a}[np.lexsort(({a},))[0]] += {s}|{A}[1:, ::2] -= {s}|{A}[::-1, ::-1][0] = {v}
{A}[:, [0, 2]] = {A}[:, [2, 0]]|{A}[[0, 1], [2, 3]] *= {s}|{A}[np.tril_indices(4, -1)] = 0.3 * {s}
{A}[np.triu_indices_from({A}, 1)] *= {s}|{A}[np.arange(4), [1, 0, 3, 2]] += {v}
{A}[:, 1], {A}[:, 2] = {A}[:, 2].copy(), {A}[:, 1].copy()|np.fill_diagonal({A}[1:, :-1], {s})
np.fill_diagonal({A}, [{s}, {s}, 0.1, 0.3])|np.put_along_axis({A}, np.array([[0], [1], [3], [2]]), {v}[:, None], 1)
np.add.at({A}, (slice(None), [0, 0]), {s})|np.add.at({A}, [0, 0, 3], {v})|np.copyto({A}, {v}, where=np.eye(4) > 0)
{A}.put([0, 5, 10], {s})|{A}[np.eye(4, dtype=bool)] = {v}|{A}[({A} > {c}).any(axis=1)] *= 0.6
{A}[:, ({A} > {c}).all(axis=0)] = 0.3|{A}[np.ix_([True, False, True, False], [1, 2])] = {s}|{A}[1, {A}[1] > {c}] += {s}
{A}.diagonal().copy()[0:0] = 0.0|np.einsum("ij->ji", {A})[1] = {v}|{A}.T[:] = {A} * 0.5
{A}.reshape(2, 2, 2, 2)[:, 1, 0] += {s}|{A}.reshape(16)[3:9] = {s}|{A}.ravel()[::5] += {v}
{A}.transpose(1, 0)[2, 1:] = {v}[:3]|{A}[-1] = {A}[0] @ {A}.T * 0.2|np.multiply({A}, {v}[:, None], out={A})
np.linalg.solve({A} * 0.05 + 2 * np.eye(4), {v}, ); {A} *= 0.9|np.outer({v}, {v}, out={A}); {A} *= 0.4
np.tanh({A}[1:3], out={A}[:2])|np.sort({A}, axis=None)[0]; {A}.sort(axis=-1)|{A}.partition(1, axis=0); {A}.sort(axis=0)
for {n} in range(1, 4): {A}[{n}, 1:] += 0.3 * {A}[{n} - 1, :-1]
for {n}, {n}w in zip({A}.T, {v}): {n} *= {n}w; {n}[0] = {n}w|{A}[:2], {A}[2:] = {A}[2:].copy(), {A}[:2] * {s}
{n} = {A}[1]; {A} = {A} * 0.5; {n}[0] = 0.3; {A}[0] = {n}|{n} = {A}.view(); {n}.shape = (2, 8); {n}[0, 3:] *= {s}
{n} = np.lib.stride_tricks.as_strided({A}, (4,), ({A}.strides[0] + {A}.strides[1],)); {n} += {s}
{n} = np.lib.stride_tricks.sliding_window_view({a}, 2, writeable=True); {n}[1] = {v}[:2]
{n} = np.diagonal({A}); {A}[0, 0] = {s}; {A}[1] += {n}|{n} = np.split({A}, 2, axis=1); {n}[1] *= {s}; {n}[0][0] = 0.1
{n}, {n}b = np.broadcast_arrays({a}, {A}); {a} += {n}b[1] * 0.3
"""
VIEWS = """
{a}.T|{a}[::-1][::-1]|{a}[...]|{a}[None][0]|np.atleast_1d({a})|np.ravel({a})|np.squeeze({a}[:, None])
{a}.reshape(2, 2).reshape(-1)|np.broadcast_arrays({a}, 1.0)[0].copy()|{a}.swapaxes(0, 0)|np.flip({a})|np.roll({a}, 0)
{A}[::-1][1]|{A}[1:3, 1:3].ravel()|{A}[:, 1][::-1]|np.diagonal({A}).copy()|{A}.swapaxes(0, 1)[2]
np.moveaxis({A}, 0, 1)[1]|next(iter({A}))|list({A})[2]|np.split({A}, 4)[1].ravel()|np.vsplit({A}, 2)[0][1]
np.einsum("ij->ji", {A})[3]|np.einsum("ii->i", {A})|[*{A}.T][1]|({a} + 0j).real|np.asarray({a}, order="F")
{a}.astype(float, copy=False)|{a}.view(np.ndarray)|np.asanyarray({a})|{A}[..., 2]|{A}.flat[4:8]
{A}.reshape(2, 2, 4)[1, 0]
"""

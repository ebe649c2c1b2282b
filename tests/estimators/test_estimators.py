"""Plans of estimators of scikit-learn, LightGBM and XGBoost predict what the libraries predict."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import compiler

skl2onnx = pytest.importorskip("skl2onnx", reason="needs skl2onnx")
pytest.importorskip("sklearn", reason="needs scikit-learn")

from sklearn import (  # noqa: E402
    cluster,
    decomposition,
    ensemble,
    linear_model,
    naive_bayes,
    neighbors,
    neural_network,
    preprocessing,
    svm,
    tree,
)
from sklearn.base import is_classifier  # noqa: E402
from sklearn.datasets import load_diabetes, load_iris  # noqa: E402
from sklearn.impute import SimpleImputer  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402

Array = np.ndarray[Any, Any]

FLOWERS, KINDS = load_iris(return_X_y=True)
FLOWERS = FLOWERS.astype(np.float32)
PATIENTS, PROGRESS = (array.astype(np.float32) for array in load_diabetes(return_X_y=True))
HOLES = np.where(np.random.default_rng(0).random(FLOWERS.shape) < 0.1, np.float32(np.nan), FLOWERS)

CLASSIFIERS = [
    ensemble.AdaBoostClassifier(n_estimators=5, random_state=0),
    ensemble.BaggingClassifier(tree.DecisionTreeClassifier(max_depth=3), n_estimators=5, random_state=0),
    ensemble.ExtraTreesClassifier(n_estimators=15, max_depth=4, random_state=0),
    ensemble.GradientBoostingClassifier(n_estimators=10, random_state=0),
    ensemble.RandomForestClassifier(n_estimators=15, max_depth=4, random_state=0),
    ensemble.VotingClassifier(
        [("a", linear_model.LogisticRegression()), ("b", naive_bayes.GaussianNB())],
        voting="soft",
        flatten_transform=False,
    ),
    linear_model.LogisticRegression(max_iter=500),
    linear_model.SGDClassifier(random_state=0),
    naive_bayes.GaussianNB(),
    neighbors.KNeighborsClassifier(3),
    neural_network.MLPClassifier((8,), max_iter=300, random_state=0),
    svm.LinearSVC(random_state=0),
    svm.NuSVC(nu=0.2),
    svm.SVC(),
    svm.SVC(kernel="linear"),
    svm.SVC(kernel="poly", degree=2, coef0=1),
    svm.SVC(kernel="sigmoid", gamma=0.01),
    tree.DecisionTreeClassifier(max_depth=5, random_state=0),
]
REGRESSORS = [
    ensemble.AdaBoostRegressor(n_estimators=5, random_state=0),
    ensemble.BaggingRegressor(tree.DecisionTreeRegressor(max_depth=3), n_estimators=5, random_state=0),
    ensemble.ExtraTreesRegressor(n_estimators=10, max_depth=4, random_state=0),
    ensemble.GradientBoostingRegressor(n_estimators=10, random_state=0),
    ensemble.RandomForestRegressor(n_estimators=10, max_depth=4, random_state=0),
    linear_model.BayesianRidge(),
    linear_model.ElasticNet(),
    linear_model.LinearRegression(),
    linear_model.Ridge(),
    neighbors.KNeighborsRegressor(3),
    svm.LinearSVR(random_state=0),
    svm.NuSVR(),
    svm.SVR(kernel="poly"),
    svm.SVR(kernel="rbf", C=100),
    tree.DecisionTreeRegressor(max_depth=5, random_state=0),
]
TRANSFORMERS = [
    cluster.KMeans(3, random_state=0, n_init=1),
    decomposition.PCA(2),
    decomposition.TruncatedSVD(2),
    make_pipeline(SimpleImputer(strategy="mean"), preprocessing.StandardScaler()),
    preprocessing.Binarizer(threshold=2.0),
    preprocessing.KBinsDiscretizer(4, encode="onehot-dense", quantile_method="averaged_inverted_cdf"),
    preprocessing.KBinsDiscretizer(4, encode="ordinal", quantile_method="averaged_inverted_cdf"),
    preprocessing.MaxAbsScaler(),
    preprocessing.MinMaxScaler(),
    preprocessing.Normalizer("l1"),
    preprocessing.Normalizer("l2"),
    preprocessing.Normalizer("max"),
    preprocessing.PolynomialFeatures(2),
    preprocessing.RobustScaler(),
    preprocessing.StandardScaler(),
]


def run(estimator: Any, x: Array) -> list[Array]:
    """The outputs of a plan of the estimator, converted without maps."""
    has_maps = is_classifier(estimator) and not isinstance(estimator, svm.LinearSVC)
    options = {"zipmap": False} if has_maps else None
    model = skl2onnx.to_onnx(estimator, x[:1], options=options)
    return list(compiler.load(compiler.compile(model)).run({model.graph.input[0].name: x}).values())


def name(estimator: Any) -> str:
    return str(estimator).replace("\n", " ")[:60]


@pytest.mark.parametrize("estimator", CLASSIFIERS, ids=name)
@pytest.mark.parametrize("kinds", [KINDS, KINDS == 1, np.array(["a", "b", "c"])[KINDS]], ids=["three", "two", "texts"])
def test_classifiers(estimator, kinds):
    estimator.fit(FLOWERS, kinds.astype(np.int64) if kinds.dtype == bool else kinds)
    labels, *scores = run(estimator, FLOWERS)
    assert np.mean(labels == estimator.predict(FLOWERS)) > 0.99  # float32 may turn a tie
    if hasattr(estimator, "predict_proba"):
        np.testing.assert_allclose(scores[0], estimator.predict_proba(FLOWERS), rtol=2e-3, atol=2e-5)


@pytest.mark.parametrize("estimator", REGRESSORS, ids=name)
def test_regressors(estimator):
    estimator.fit(PATIENTS, PROGRESS)
    (found,) = run(estimator, PATIENTS)
    np.testing.assert_allclose(found.reshape(-1), estimator.predict(PATIENTS), rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("estimator", TRANSFORMERS, ids=name)
def test_transformers(estimator):
    x = HOLES if "Imputer" in str(estimator) else FLOWERS
    estimator.fit(x)
    found = run(estimator, x)
    expected = estimator.transform(x)
    np.testing.assert_allclose(found[-1], expected, rtol=1e-4, atol=2e-4)


def test_several_targets():
    both = np.stack([PROGRESS, -PROGRESS / 2], 1)
    for estimator in (ensemble.RandomForestRegressor(5, max_depth=4, random_state=0), linear_model.Ridge()):
        estimator.fit(PATIENTS, both)
        np.testing.assert_allclose(run(estimator, PATIENTS)[0], estimator.predict(PATIENTS), rtol=1e-4, atol=1e-3)


def test_one_class():
    estimator = svm.OneClassSVM(nu=0.2).fit(FLOWERS)
    labels, _ = run(estimator, FLOWERS)
    assert np.mean(labels.reshape(-1) == estimator.predict(FLOWERS)) > 0.98


def test_categories():
    for columns in (np.array([["a", "x"], ["b", "y"], ["a", "z"]], object), np.array([[1, 5], [2, 7], [1, 6]])):
        for estimator in (preprocessing.OneHotEncoder(sparse_output=False), preprocessing.OrdinalEncoder()):
            estimator.fit(columns)
            np.testing.assert_array_equal(run(estimator, columns)[0], estimator.transform(columns))


def boosted(library: str, task: str) -> Any:
    """An estimator of LightGBM or XGBoost."""
    pytest.importorskip("onnxmltools", reason="needs onnxmltools")
    module = pytest.importorskip(library, reason=f"needs {library}")
    quiet = {"verbose": -1} if library == "lightgbm" else {}
    return getattr(module, {"lightgbm": "LGBM", "xgboost": "XGB"}[library] + task)(
        n_estimators=12, random_state=0, **quiet
    )


def converted(library: str, estimator: Any, columns: int) -> Any:
    from onnxmltools.convert import convert_lightgbm, convert_xgboost
    from onnxmltools.convert.common.data_types import FloatTensorType

    kinds = [("x", FloatTensorType([None, columns]))]
    if library == "xgboost":
        return convert_xgboost(estimator, initial_types=kinds, target_opset=15)
    return convert_lightgbm(estimator, initial_types=kinds, zipmap=False, target_opset=15)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("holes", [False, True])
def test_boosted_classifiers(library, classes, holes):
    x, kinds = HOLES if holes else FLOWERS, KINDS if classes == 3 else (KINDS == 1).astype(int)
    estimator = boosted(library, "Classifier").fit(x, kinds)
    model = converted(library, estimator, x.shape[1])
    labels, scores = compiler.load(compiler.compile(model)).run({"x": x}).values()
    assert (labels == estimator.predict(x)).all()
    np.testing.assert_allclose(scores, estimator.predict_proba(x), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_boosted_regressors(library):
    estimator = boosted(library, "Regressor").fit(PATIENTS, PROGRESS)
    model = converted(library, estimator, PATIENTS.shape[1])
    (found,) = compiler.load(compiler.compile(model)).run({"x": PATIENTS}).values()
    np.testing.assert_allclose(found.reshape(-1), estimator.predict(PATIENTS), rtol=1e-4, atol=1e-3)

"""Images as rows: their size, their channels and their scale."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from compiler import Error
from compiler.batch import Settings, run_batch
from tests.batch.plans import LINES, PICTURES, bad_rows, plan_of, ramp, written

Image = pytest.importorskip("PIL.Image", reason="needs Pillow")

PIXELS = np.arange(24, dtype=np.uint8).reshape(2, 4, 3) * 10
AS_NPZ = Settings(format="npz")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of images. The input takes some of them."""
    made = tmp_path / "images"
    made.mkdir()
    Image.fromarray(PIXELS).save(made / "a.png")
    Image.fromarray(PIXELS[:, :, 0]).save(made / "b.png")
    Image.fromarray(np.concatenate([PIXELS, PIXELS])).save(made / "c.png")
    Image.fromarray(np.concatenate([PIXELS, PIXELS[:, :, :1]], axis=2)).save(made / "d.png")
    (made / "e.png").write_bytes(b"no image")
    Image.fromarray(PIXELS * 0 + 100).save(made / "f.jpg")
    (made / "notes.txt").write_text("no data")
    return made


def test_images_are_channels_of_pixels(folder: Path, tmp_path: Path) -> None:
    run_batch(plan_of(PICTURES), [folder], tmp_path / "out", AS_NPZ)
    with np.load(tmp_path / "out/part-000000.npz") as part:
        assert [Path(each).name for each in part["source_files"]] == ["a.png", "b.png", "f.jpg"]
    _, values = written(tmp_path / "out")
    gray = np.repeat(PIXELS[:, :, :1], 3, axis=2)
    expected = np.stack([PIXELS, gray, PIXELS * 0 + 100]).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(values, expected.astype(np.float32))
    reasons = [reason for _, reason in bad_rows(tmp_path / "out")]
    assert reasons[:2] == [
        "the image has 4 × 4 pixels, the input 2 × 4",
        "the image has the mode RGBA, and the input takes RGB",
    ]
    assert reasons[2].startswith("cannot read the image: ") and len(reasons) == 3


def test_a_scale_multiplies_the_pixels(folder: Path, tmp_path: Path) -> None:
    run_batch(plan_of(PICTURES), [folder / "a.png"], tmp_path / "out", Settings(format="npz", scale=0.5))
    np.testing.assert_array_equal(written(tmp_path / "out")[1][0], PIXELS.transpose(2, 0, 1) / np.float32(2))


def test_integers_take_the_pixels_as_they_are(folder: Path, tmp_path: Path) -> None:
    plan = plan_of(PICTURES.replace("float", "uint8"))
    run_batch(plan, [folder / "a.png"], tmp_path / "out", AS_NPZ)
    _, values = written(tmp_path / "out")
    assert values.dtype == np.uint8
    np.testing.assert_array_equal(values[0], PIXELS.transpose(2, 0, 1))
    with pytest.raises(Error, match="a scale is for float32, and a row of the input 'image' is uint8"):
        run_batch(plan, [folder / "a.png"], tmp_path / "scaled", Settings(format="npz", scale=0.5))


TWO = "(float[n, 3, 2, 4] a, float[n, 3, 2, 4] b) => (float[n, 3, 2, 4] y) { y = Add(a, b) }"


@pytest.mark.parametrize(
    ("graph", "said"),
    [
        (TWO, "an image is the value of one input, and the plan has 2: a, b"),
        (LINES, r"an image has the shape \[1, 3 or 4, height, width\], and a row of the input 'x' is float32 \[2\]"),
        (PICTURES.replace("float", "double"), "an image becomes float32 or uint8"),
    ],
)
def test_inputs_that_take_no_images_are_refused(graph: str, said: str, folder: Path, tmp_path: Path) -> None:
    with pytest.raises(Error, match=said):
        run_batch(plan_of(graph), [folder], tmp_path / "out", AS_NPZ)


@pytest.mark.parametrize(
    ("module", "name", "said"),
    [
        ("PIL", "images/a.png", "images need Pillow, which is not installed"),
        ("pyarrow", "rows.parquet", "Parquet needs pyarrow, which is not installed"),
        ("pyarrow", "rows.npz", "Parquet needs pyarrow, which is not installed"),
    ],
)
def test_a_missing_package_is_named(
    module: str, name: str, said: str, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in (module, f"{module}.parquet"):
        monkeypatch.setitem(__import__("sys").modules, each, None)
    (tmp_path / "rows.parquet").write_bytes(b"")
    np.savez(tmp_path / "rows.npz", x=ramp(2))
    form = "npz" if name.endswith("png") else "parquet"
    graph = PICTURES if name.endswith("png") else LINES
    with pytest.raises(Error, match=f'{said}: run pip install "candle-compiler\\[batch\\]"'):
        run_batch(plan_of(graph), [tmp_path / name], tmp_path / "out", Settings(format=form))  # type: ignore[arg-type]

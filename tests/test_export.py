"""The exporter: symbolic dims, names of outputs, and traces that do not tell where they were made."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

from compiler.export import relative_trace

ROOT = Path("/home/ann/project")


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("/home/ann/project/nets/unet.py", "nets/unet.py"),
        ("/home/ann/other/unet.py", "unet.py"),
        ("/home/ann/project/.venv/lib/python3.12/site-packages/torch/nn/x.py", "site-packages/torch/nn/x.py"),
        ("/usr/lib/python3.12/functools.py", "python3.12/functools.py"),
        ("<string>", "<string>"),
        ("nets/unet.py", "nets/unet.py"),
    ],
)
def test_file_names_become_relative(name: str, expected: str) -> None:
    trace = f'  File "{name}", line 3, in forward\n    return self.conv(x)\n'
    assert relative_trace(trace, ROOT) == f'  File "{expected}", line 3, in forward\n    return self.conv(x)\n'


def test_export_names_dims_and_outputs(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    import compiler

    module = torch.nn.Linear(3, 2)
    path = compiler.export(
        module, (torch.zeros(4, 3),), tmp_path / "m.onnx", dynamic={"input": {0: "batch"}}, outputs=["scores"]
    )
    graph = onnx.load(path).graph
    assert graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch"
    assert [output.name for output in graph.output] == ["scores"]


@pytest.mark.parametrize("name", ["digits", "digits_3d"])
def test_committed_models_name_no_machine(name: str) -> None:
    data = (Path(__file__).parent.parent / f"models/{name}.onnx").read_bytes()
    assert f'File "models/{name}.py"'.encode() in data
    assert not any(place in data for place in (b"/home/", b"/root/", b"/work/", b"/usr/"))

"""The origins of nodes, as both PyTorch exporters record them."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from compiler.ir import origin

TRACE = """File "{root}nets/net.py", line 41, in forward
    features = self.encoder(clip)
  File "/env/lib/python3.12/site-packages/torch/nn/modules/container.py", line 259, in forward
    input = module(input)
  File "{root}nets/net.py", line 29, in forward
    return self.conv(x)
  File "torch/nn/modules/conv.py", line 712, in forward
    return self._conv_forward(input)"""
SCOPES = "['', 'encoder', 'encoder.0', 'encoder.0.conv', 'conv3d']"
CLASSES = "['nets.net.Net', 'torch.nn.Sequential', 'nets.net.Block', 'torch.nn.modules.conv.Conv3d', 'aten.conv3d']"


def recorded(*nodes: ir.Node) -> list[origin.Origin]:
    """The origins of nodes that a file has, once it is loaded."""
    model = ir.Model(ir.Graph([], [], nodes=nodes, opset_imports={"": 20}), ir_version=10)
    origin.record(model)
    return [origin.of(node) for node in model.graph]


def node(name: str, trace: str = "", scopes: str = "[]", classes: str = "[]") -> ir.Node:
    made = ir.Node("", "Conv", [], name=name)
    made.metadata_props.update(
        {
            "pkg.torch.onnx.stack_trace": trace,
            "pkg.torch.onnx.name_scopes": scopes,
            "pkg.torch.onnx.class_hierarchy": classes,
        }
    )
    return made


SCRIPTED = """/env/lib/python3.11/site-packages/torch/nn/modules/conv.py(735): forward
/env/lib/python3.11/site-packages/torch/nn/modules/module.py(1787): _wrapped_call_impl
/home/ann/project/net.py(29): forward
/env/lib/python3.11/site-packages/torch/nn/modules/module.py(1787): _wrapped_call_impl
/home/ann/project/net.py(41): forward
/env/lib/python3.11/site-packages/torch/onnx/__init__.py(337): export
/home/ann/project/main.py(17): <module>
"""


@pytest.mark.parametrize(
    ("root", "file"), [("/home/ann/project/", "net.py"), ("", "nets/net.py")], ids=["absolute", "relative"]
)
def test_the_innermost_own_line_is_recorded(root: str, file: str) -> None:
    (found,) = recorded(node("conv", TRACE.format(root=root), SCOPES, CLASSES))
    assert found == origin.Origin(("Conv(conv)",), "encoder.0.conv", "Conv3d", f"{file}:29 in Block.forward")


def test_absolute_files_are_relative_to_their_common_folder() -> None:
    traces = [f'File "/home/ann/{file}", line 3, in forward' for file in ("a/x.py", "b/y.py")]
    assert [each.source for each in recorded(*(node("n", trace) for trace in traces))] == [
        "a/x.py:3 in forward",
        "b/y.py:3 in forward",
    ]


def test_a_line_of_the_exporter_is_nobodys() -> None:
    trace = 'File "torch/fx/passes/runtime_assert.py", line 24, in insert_deferred_runtime_asserts'
    scopes = "['_empty_nn_module_stack_from_metadata_hook', 'sym_size']"
    assert recorded(node("shape", trace, scopes, scopes)) == [origin.Origin(("Conv(shape)",))]


def test_the_torchscript_exporter_puts_modules_in_names() -> None:
    (found,) = recorded(node("/encoder/0/pool/MaxPool"))
    assert found.module == "encoder.0.pool"


def test_the_torchscript_exporter_puts_lines_in_doc_strings() -> None:
    made = ir.Node("", "Conv", [], name="/encoder/0/conv/Conv", doc_string=SCRIPTED)
    (found,) = recorded(made)
    assert str(found) == "net.py:29 in forward   encoder.0.conv   Conv(/encoder/0/conv/Conv)"
    (other,) = recorded(ir.Node("", "Conv", [], name="conv", doc_string="see paper (3): conv\n(12): x"))
    assert other.source == ""


@pytest.mark.parametrize("broken", ["[", "{1: 2}", "__import__('os')", "[" * 1000])
def test_broken_metadata_tells_nothing(broken: str) -> None:
    assert recorded(node("conv", "", broken, broken)) == [origin.Origin(("Conv(conv)",))]


def test_a_fused_node_has_every_origin() -> None:
    old = [
        node("conv", TRACE.format(root=""), SCOPES, CLASSES),
        node("norm", "", "['', 'encoder.0.norm', 'n']", CLASSES),
    ]
    recorded(*old)
    fused = ir.Node("", "Conv", [], name="fused")
    origin.inherit([fused], old)
    assert origin.of(fused).nodes == ("Conv(conv)", "Conv(norm)")
    assert origin.of(fused).module == "encoder.0"

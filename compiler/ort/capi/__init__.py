"""The module of onnxruntime's exceptions, under onnxruntime's name."""

from compiler.ort.capi import onnxruntime_pybind11_state

__all__ = ["onnxruntime_pybind11_state"]

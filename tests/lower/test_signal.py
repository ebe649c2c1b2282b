"""Spectra, against onnxruntime and numpy.fft."""

import ml_dtypes
import numpy as np
import pytest

from tests.scratch.row import rows

RANDOM = np.random.default_rng(6)
CLOSE = {"rtol": 1e-5, "atol": 2e-5}


def parts(spectrum, dtype=np.float32):
    return np.stack([spectrum.real, spectrum.imag], -1).astype(dtype)


@pytest.mark.parametrize("length", [None, 5, 8, 12])
@pytest.mark.parametrize("one_sided", [0, 1])
@pytest.mark.parametrize("axis", [1, 2, -2])
def test_forward(check_node, axis, one_sided, length):
    x = RANDOM.standard_normal((2, 8, 6, 1)).astype(np.float32)
    at = axis % 4
    transform = np.fft.rfft if one_sided else np.fft.fft
    expected = [parts(transform(x[..., 0].astype(np.float64), length, at))]
    size = None if length is None else np.array(length)
    check_node("DFT", [x, size], opset=17, attributes={"axis": axis, "onesided": one_sided}, expected=expected, **CLOSE)
    inputs = [x, size, np.array(axis)]
    check_node("DFT", inputs, opset=20, attributes={"onesided": one_sided}, expected=expected, **CLOSE)


def test_complex_and_inverse(check_node):
    x = RANDOM.standard_normal((2, 8, 6, 2)).astype(np.float32)
    values = x[..., 0].astype(np.float64) + 1j * x[..., 1]
    check_node("DFT", [x], opset=20, expected=[parts(np.fft.fft(values, axis=2))], **CLOSE)
    check_node("DFT", [x], opset=20, attributes={"inverse": 1}, expected=[parts(np.fft.ifft(values, axis=2))], **CLOSE)


@pytest.mark.parametrize("length", [None, 9, 10])
def test_real_inverse(check_node, length):
    signal = RANDOM.standard_normal((2, length or 10, 3))
    x = parts(np.fft.rfft(signal, axis=1))
    size = None if length is None else np.array(length)
    attributes = {"inverse": 1, "onesided": 1}
    expected = [signal[..., None].astype(np.float32)]
    check_node("DFT", [x, size, np.array(1)], opset=20, attributes=attributes, expected=expected, **CLOSE)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-12), (np.float16, 2e-3), (ml_dtypes.bfloat16, 2e-2)])
def test_dtypes(check_node, dtype, tolerance):
    x = RANDOM.standard_normal((1, 16, 1)).astype(dtype)
    expected = [parts(np.fft.fft(x[..., 0].astype(np.float64)), dtype)]
    check_node("DFT", [x], opset=20, expected=expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("one_sided", [0, 1])
@pytest.mark.parametrize(("window", "length"), [(False, True), (True, False), (True, True)])
def test_frames(check_node, one_sided, window, length):
    x = RANDOM.standard_normal((2, 50, 1)).astype(np.float32)
    shape = np.hanning(16).astype(np.float32)
    inputs = [x, np.array(7), shape if window else None, np.array(16) if length else None]
    while inputs[-1] is None:
        inputs.pop()
    frames = np.stack([x[:, at : at + 16, 0] for at in range(0, 35, 7)], 1).astype(np.float64)
    transform = np.fft.rfft if one_sided else np.fft.fft
    expected = [parts(transform(frames * shape if window else frames))]
    check_node("STFT", inputs, opset=17, attributes={"onesided": one_sided}, expected=expected, **CLOSE)


def test_frames_of_a_complex_signal(check_node):
    x = RANDOM.standard_normal((1, 32, 2)).astype(np.float32)
    values = x[..., 0].astype(np.float64) + 1j * x[..., 1]
    frames = np.stack([values[:, at : at + 8] for at in range(0, 25, 4)], 1)
    inputs = [x, np.array(4), None, np.array(8)]
    check_node("STFT", inputs, opset=17, attributes={"onesided": 0}, expected=[parts(np.fft.fft(frames))], **CLOSE)


@pytest.mark.parametrize(
    ("bins", "length", "rate", "low", "high"), [(8, 16, 8192, 0, 4096), (40, 512, 16000, 20, 7600)]
)
def test_mel_weights(check_node, bins, length, rate, low, high):
    inputs = [np.array(bins), np.array(length), np.array(rate), np.float32(low), np.float32(high)]
    check_node("MelWeightMatrix", [np.asarray(value) for value in inputs], opset=17, rtol=1e-6, atol=1e-6)
    attributes = {"output_datatype": 11}
    check_node(
        "MelWeightMatrix", [np.asarray(v) for v in inputs], opset=17, attributes=attributes, rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("op_type", ["HannWindow", "HammingWindow", "BlackmanWindow"])
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows(check_node, op_type, periodic):
    check_node(op_type, [np.array(12)], opset=17, attributes={"periodic": periodic}, rtol=1e-5, atol=1e-6)


SCRATCH = [
    *rows("float double", "T[k, n, 1] x", "y = DFT(x)", k=400, n=2000),
    *rows("float", "T[1, k, 1] x, int64 a, int64 b", "y = DFT(x, a, b)", k=400_009, a=np.int64(400_009), b=np.int64(1)),
    *rows("float", "T[1, k, 1] x, int64 a, T[400] w", "y = STFT(x, a, w)", k=500_000, a=np.int64(100)),
    *rows(
        "int64",
        "T a, T b, T c, float d, float e",
        "y = MelWeightMatrix(a, b, c, d, e)",
        a=np.int64(400),
        b=np.int64(8192),
        c=np.int64(16000),
        d=np.float32(0),
        e=np.float32(8000),
    ),
]

"""Every operator of ONNX on tensors of some megabytes, with attributes and element types that kernels tell apart."""

from tests.scratch import convolutions, elementwise, images, moved, others, products

ROWS = [
    *elementwise.ELEMENTWISE,
    *elementwise.REDUCED,
    *images.NORMALIZED,
    *images.SAMPLED,
    *moved.MOVED,
    *convolutions.CONVOLUTIONS,
    *products.PRODUCTS,
    *others.OTHERS,
]

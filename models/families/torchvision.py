"""The networks of torchvision: classification, segmentation, optical flow, video, and the parts of detectors."""

from __future__ import annotations

from models.families.recipe import Recipe, call, floats

__all__ = ["recipes"]

CLASSIFIERS = (
    "alexnet", "convnext_tiny", "densenet121", "efficientnet_b0", "efficientnet_v2_s", "googlenet", "inception_v3",
    "maxvit_t", "mnasnet0_5", "mobilenet_v2", "mobilenet_v3_large", "mobilenet_v3_small", "regnet_x_400mf",
    "regnet_y_400mf", "resnet18", "resnet50", "resnext50_32x4d", "shufflenet_v2_x0_5", "squeezenet1_0",
    "squeezenet1_1", "swin_t", "swin_v2_t", "vgg11", "vgg11_bn", "vit_b_32", "wide_resnet50_2",
)  # fmt: skip
SEGMENTERS = ("deeplabv3_mobilenet_v3_large", "deeplabv3_resnet50", "fcn_resnet50", "lraspp_mobilenet_v3_large")
IMAGES = {"min_size": 64, "max_size": 128}
"""The sizes to which detectors scale images. The factors are exact here, because their code computes other factors in
double precision, but records them in single precision."""
PROPOSALS = {**IMAGES, "rpn_pre_nms_top_n_test": 40, "rpn_post_nms_top_n_test": 12, "box_detections_per_img": 5}
CANDIDATES = {"score_thresh": 0.0, "topk_candidates": 20, "detections_per_img": 5}
DETECTORS: dict[str, dict[str, float]] = {
    "fasterrcnn_mobilenet_v3_large_320_fpn": PROPOSALS,
    "fcos_resnet50_fpn": {**IMAGES, **CANDIDATES},
    "keypointrcnn_resnet50_fpn": PROPOSALS,
    "maskrcnn_resnet50_fpn": PROPOSALS,
    "retinanet_resnet50_fpn": {**IMAGES, **CANDIDATES},
    "ssd300_vgg16": CANDIDATES,
}
"""The numbers of boxes that detectors keep."""
FIXED = {"inception_v3": 96, "maxvit_t": 224, "vit_b_32": 224}
"""The sizes of images of networks that accept only one, or have the smallest size."""


def recipes() -> list[Recipe]:
    """One recipe for each network."""
    return [
        *map(_classifier, CLASSIFIERS),
        *map(_segmenter, SEGMENTERS),
        *(_detector(name, stated) for name, stated in DETECTORS.items()),
        _video(),
        _flow(),
    ]


def _classifier(name: str) -> Recipe:
    more = {"init_weights": True} if name in ("googlenet", "inception_v3") else {}
    network = call(f"torchvision.models.{name}", num_classes=10, **more)
    image = FIXED.get(name, 64)
    sizes = {"batch": 2}, {"batch": 3}
    return Recipe(f"torchvision_{name}", network, {"x": floats("batch", 3, image, image)}, sizes, ("classification",))


def _segmenter(name: str) -> Recipe:
    network = call(f"torchvision.models.segmentation.{name}", num_classes=4, weights_backbone=None)
    sizes = {"batch": 2}, {"batch": 1}
    image = "input" if name.startswith("lraspp") else "x"
    return Recipe(f"torchvision_{name}", network, {image: floats("batch", 3, 64, 96)}, sizes, ("segmentation",))


def _detector(name: str, stated: dict[str, float]) -> Recipe:
    """The number of boxes depends on their values. PyTorch's older exporter has a form of the code that allows this."""
    network = call("models.families.wrapped.Detector", name, **stated)
    sizes = {"height": 128, "width": 160}, {"height": 64, "width": 96}
    given = {"image": floats(3, "height", "width")}
    return Recipe(f"torchvision_{name}", network, given, sizes, ("detection",), exporter="torchscript")


def _video() -> Recipe:
    """The other networks for videos have 3-D convolutions without bias, to which PyTorch gives one of a wrong size."""
    network = call("torchvision.models.video.swin3d_t", num_classes=4)
    given = {"x": floats("batch", 3, 4, 32, 32)}
    return Recipe("torchvision_swin3d_t", network, given, ({"batch": 2}, {"batch": 3}), ("video",))


def _flow() -> Recipe:
    network = call("models.families.wrapped.Flow", "raft_small", num_flow_updates=2)
    images = {"image1": floats("batch", 3, 128, 136), "image2": floats("batch", 3, 128, 136)}
    return Recipe("torchvision_raft_small", network, images, ({"batch": 2}, {"batch": 1}), ("flow",))

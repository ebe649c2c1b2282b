"""Plans on Ray: in `ray.data`, in Ray Serve, and runs over files whose batches run in Ray's workers.

Importing this package does not import Ray.
"""

from compiler.batch.largest import largest_batch
from compiler.ray.engine import run_batch
from compiler.ray.predictor import Predictor
from compiler.ray.serving import deployment

__all__ = ["Predictor", "deployment", "largest_batch", "run_batch"]

"""A small drive with ground truth: a car, a hidden one, one of no class, and who finds them."""

import numpy as np

from avrt.logs.writer import LogWriter
from avrt.payload import Box, CameraInfo, TrueObject, Truth

START_NS = 1_700_000_000_000_000_000
STEP_NS = 100_000_000
TRUTH = "/ground_truth/objects"
POSE = (0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)
# optical frame in the LiDAR's: z ahead, x right, y down
CAMERA = (0.0, 0.0, 0.0, -0.5, 0.5, -0.5, 0.5)
CLOUD, WIDTH, HEIGHT = 40, 600, 200

STAGES = """
import numpy as np
import avrt
from avrt.payload import Box, Detection, Detections, ImageDetections, Track, Tracks

NONE = np.zeros((0, 3), np.float32)

def places(cloud):
    return cloud.payload.xyz[::40]

class Detect(avrt.Stage):
    def process(self, cloud):
        boxes = [Box(float(x), float(y), float(z), 4.0, 2.0, 1.5, 0.0) for x, y, z in places(cloud)]
        boxes.append(Box(50.0, 20.0, 0.0, 4.0, 2.0, 1.5, 0.0))
        return Detections(tuple(Detection(b, "car", 0.5, NONE, 40, b.x - 2) for b in boxes))

class Track_(avrt.Stage):
    def __init__(self, late=2, off=0.5):
        self.late, self.off, self.seen = late, off, 0

    def process(self, cloud):
        self.seen += 1
        made = []
        for index, (x, y, z) in enumerate(places(cloud)):
            box = Box(float(x) + self.off, float(y), float(z), 4.0, 2.0, 1.5, 0.0)
            made.append(Track(index, "car", box, 5.0, 1.0, 0.0, np.zeros((5, 5)), 0.95,
                self.seen, 0, self.seen > self.late, ("lidar",), box.x - 2, NONE))
        ghost = Box(60.0, 0.0, 0.0, 4.0, 2.0, 1.5, 0.0)
        made.append(Track(90, "car", ghost, 0.0, 0.0, 0.0, np.zeros((5, 5)), 0.2,
            1, 0, True, (), 58.0, NONE))
        return Tracks(tuple(made), 0.0)

class Look(avrt.Stage):
    def process(self, image):
        boxes = np.array([[270.0, 80.0, 330.0, 122.0], [10.0, 10.0, 60.0, 60.0]], np.float32)
        return ImageDetections(boxes, np.ones(2, np.float32), ("car", "car"), 600, 200,
            image.payload.info)

def count(cloud):
    return cloud.payload.count
"""
PIPELINE = """
pipeline: scored
calibration: {tf: [/tf_static]}
sources:
  lidar: {type: lidar, topic: /lidar, rate: 10 Hz}
  camera: {type: camera, topic: /camera, info: /camera/info, rate: 10 Hz}
stages:
  detect: {run: "stages.py:Detect", inputs: {cloud: lidar}, wcet: 1 ms, deadline: 90 ms}
  track: {run: "stages.py:Track_", inputs: {cloud: lidar}, wcet: 1 ms, deadline: 90 ms}
  look: {run: "stages.py:Look", inputs: {image: camera}, wcet: 1 ms, deadline: 90 ms}
  count: {run: "stages.py:count", inputs: {cloud: lidar}, wcet: 1 ms, deadline: 90 ms}
"""


def truth_at(k):
    """The scene at frame k (which may lie between two): in the vehicle's frame, 1 m below."""
    return Truth(
        (
            TrueObject(1, "car", Box(10.0 + 0.5 * k, 2.0, 1.75, 4.0, 2.0, 1.5, 0.0), 5.0, 0.0),
            TrueObject(2, "car", Box(30.0, -5.0, 1.75, 4.0, 2.0, 1.5, 0.0), 0.0, 0.0),
            TrueObject(3, "unknown", Box(15.0, -8.0, 1.75, 4.0, 2.0, 1.5, 0.0), 0.0, 0.0),
        )
    )


def write_scored(path, frames=6, *, with_truth=True, camera=True):
    """Truth comes 50 ms before and after each sweep, so it must be interpolated."""
    rng = np.random.default_rng(0)
    jpeg = _jpeg()
    with LogWriter(path) as log:
        mounts = [("base_link", "roof", POSE), ("roof", "cam", CAMERA)]
        log.add_transforms("/tf_static", START_NS - STEP_NS // 2, mounts)
        for k in range(frames):
            at_ns = START_NS + k * STEP_NS
            if with_truth:
                log.add_truth(TRUTH, "base_link", at_ns - STEP_NS // 2, truth_at(k - 0.5))
            centres = [(10.0 + 0.5 * k, 2.0, 0.75), (15.0, -8.0, 0.75)]
            parts = [rng.uniform(-0.4, 0.4, (CLOUD, 3)) + centre for centre in centres]
            for part, centre in zip(parts, centres, strict=True):
                part[0] = centre
            log.add_cloud("/lidar", "roof", at_ns, np.concatenate(parts).astype(np.float32))
            if camera:
                projection = np.array([[300.0, 0, 300, 0], [0, 300, 100, 0], [0, 0, 1, 0]])
                info = CameraInfo(WIDTH, HEIGHT, projection)
                log.add_camera_info("/camera/info", "cam", at_ns, info)
                log.add_jpeg("/camera", "cam", at_ns, jpeg)
        if with_truth:
            last_ns = START_NS + frames * STEP_NS - STEP_NS // 2
            log.add_truth(TRUTH, "base_link", last_ns, truth_at(frames - 0.5))
    return path


def _jpeg():
    from io import BytesIO  # noqa: PLC0415

    from PIL import Image  # noqa: PLC0415

    buffer = BytesIO()
    Image.new("RGB", (WIDTH, HEIGHT)).save(buffer, "JPEG")
    return buffer.getvalue()


def write_pipeline(folder):
    (folder / "stages.py").write_text(STAGES)
    path = folder / "scored.yaml"
    path.write_text(PIPELINE)
    return path

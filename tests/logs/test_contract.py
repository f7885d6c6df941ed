"""The rules for readers (`avrt.logs.testing`), asked of every format that avrt reads by itself."""

import pytest
import small_sets

from avrt.logs.testing import DamagedLogContract, LogContract

PAGE = 4096


class Contract(LogContract, DamagedLogContract):
    """A whole log, and the same one spoilt."""

    @pytest.fixture
    def log(self, tmp_path):
        return self.write(tmp_path / "log")

    @pytest.fixture
    def damaged_log(self, log):
        self.spoil(log)
        return log

    def write(self, path):
        raise NotImplementedError

    def spoil(self, path):
        """Overwrite a few bytes in the middle."""
        data = bytearray(path.read_bytes())
        middle = len(data) // 2
        data[middle : middle + 8] = b"not this"
        path.write_bytes(data)


class TestMcap(Contract):
    write = staticmethod(small_sets.write_mcap)


class TestBag(Contract):
    write = staticmethod(small_sets.write_bag)

    def spoil(self, path):
        """Cut it: without compression, a chunk has no check sum."""
        data = path.read_bytes()
        path.write_bytes(data[: len(data) // 2])


class TestRosbag2(Contract):
    write = staticmethod(small_sets.write_rosbag2)

    def spoil(self, path):
        """Overwrite the database's last page of messages."""
        (file,) = path.glob("*.db3")
        data = bytearray(file.read_bytes())
        place = data.rindex(b"imu")
        data[place // PAGE * PAGE : place // PAGE * PAGE + 64] = bytes(64)
        file.write_bytes(data)


class TestComma(Contract):
    write = staticmethod(small_sets.write_comma)

    def spoil(self, path):
        (path / "processed_log/CAN/speed/value").unlink()


class TestKittiRaw(Contract):
    write = staticmethod(small_sets.write_kitti_raw)

    def spoil(self, path):
        (path / "velodyne_points/data/0000000001.bin").unlink()
        image = path / "image_02/data/0000000002.png"
        image.write_bytes(image.read_bytes()[:-40])


class TestKittiTracking(Contract):
    write = staticmethod(small_sets.write_kitti_tracking)

    def spoil(self, path):
        cut = path.parent / "velodyne/0003/000002.bin"
        cut.write_bytes(cut.read_bytes()[:-3])


class TestKittiFrames(Contract):
    write = staticmethod(small_sets.write_kitti_frames)

    def spoil(self, path):
        (path / "training/label_2/000001.txt").write_text("Car 0.00")


class TestNuscenes(Contract):
    write = staticmethod(small_sets.write_nuscenes)

    def spoil(self, path):
        samples = path.parent.parent / "samples"
        for file in (*(samples / "RADAR_FRONT").iterdir(), *(samples / "CAM_FRONT").iterdir()):
            file.write_bytes(file.read_bytes()[:-3])

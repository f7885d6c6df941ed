"""KITTI: raw drives, object frames and tracking sequences, as they are unpacked.

A. Geiger et al., CVPR 2012 and IJRR 2013; file formats are those of the development kits'
readmes (https://www.cvlibs.net/datasets/kitti/). Frames: `velodyne` and `imu` have x forward,
y left, z up; `camera_00` to `camera_03` are the rectified cameras, z forward, x right, y down.
"""

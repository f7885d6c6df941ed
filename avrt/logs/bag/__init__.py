"""ROS 1 bags: their records, and reading them by time."""

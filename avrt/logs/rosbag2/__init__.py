"""rosbag2 folders and files: parts in MCAP or SQLite that are one log."""

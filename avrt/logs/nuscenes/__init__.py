"""nuScenes: one scene of a data set as it is unpacked (Caesar et al., CVPR 2020).

Fields and units are those of https://www.nuscenes.org/nuscenes#data-format.
"""

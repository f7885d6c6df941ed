"""How right a recorded run was, against ground truth."""

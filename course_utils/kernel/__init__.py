"""What runs unseen in a notebook's kernel: rehearsed trainings are loaded, cells without weights skipped."""

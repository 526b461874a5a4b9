"""What works inside a notebook's kernel, unseen: trainings loaded as rehearsed, cells passed over."""

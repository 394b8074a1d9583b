"""`counting`: count the satisfied predicates of each subscription (`index`, `hit_counting`), and SIFT's methods (`sift`)."""

"""Planning: what a model costs under a plan on a cluster, and what to change."""

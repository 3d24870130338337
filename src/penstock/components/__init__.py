"""Components: what the nodes of a job do. One file per type or small family; `base` says what a component is."""

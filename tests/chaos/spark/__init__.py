"""Jobs on a standalone cluster while their processes are killed at random: no half artefact is
ever seen, the next run completes, and its results are those of an undisturbed one."""

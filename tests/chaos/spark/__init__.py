"""Spark jobs on a standalone cluster while their processes are killed at random: no partial
artefact is ever visible, the next run completes, and its results equal those of an undisturbed one.
"""

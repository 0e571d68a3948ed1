"""Tests of the face for pyslurm scripts."""

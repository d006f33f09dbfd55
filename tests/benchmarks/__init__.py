"""Benchmarks of the product against honest baselines in the same run: `python -m
tests.benchmarks`.
"""

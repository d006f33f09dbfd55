// nanobind's own sources, from the installed package; setup.py has their path.

#include "nb_combined.cpp"

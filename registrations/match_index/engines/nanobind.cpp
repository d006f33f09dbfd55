// nanobind's own sources, from the installed package: setup.py says where these are.

#include "nb_combined.cpp"

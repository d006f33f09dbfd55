"""All functions that programs call, each with its fewest and most arguments. Plain module."""

from registrations.agents.host_functions import HOST_FUNCTIONS
from registrations.agents.number_functions import NUMBER_FUNCTIONS
from registrations.agents.value_functions import VALUE_FUNCTIONS

FUNCTIONS = {**NUMBER_FUNCTIONS, **VALUE_FUNCTIONS, **HOST_FUNCTIONS}

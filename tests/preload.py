"""What the processes of a hub in tests import: what those of the product do, but a password is
hashed with one iteration. A million take a third of a second of processor time at each login.
"""

from eventhub import preload  # before Django is named, as there

# isort: split
from django.contrib.auth.hashers import PBKDF2PasswordHasher

adopt_environment = preload.adopt_environment
PBKDF2PasswordHasher.iterations = 1

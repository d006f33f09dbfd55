"""`pyarrow.dataset` without pandas, which it imports when it is imported. Plain module."""

from eventhub.base.arrow import leave_pandas_out

leave_pandas_out()

import pyarrow.dataset as ds  # noqa: E402

__all__ = ["ds"]

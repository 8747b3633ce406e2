"""The types of the arrays that figures are computed from."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Booleans = NDArray[np.bool_]
# Names, such as those of methods.
Texts = NDArray[np.object_]

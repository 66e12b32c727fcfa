"""Values that are the same in every process and at every second."""

import gzip
from functools import partial

gzip_fixed = partial(gzip.compress, mtime=0)
"""gzip without the time in its header: pytest-xdist wants the same test ids in all its workers."""

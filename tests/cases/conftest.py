from __future__ import annotations

import pytest

from cases.reference import load


@pytest.fixture
def case(request):
    """The reference case whose id is the parameter."""
    return load(request.param)

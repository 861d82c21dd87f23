from pathlib import Path

import pytest
from proc_folder import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)

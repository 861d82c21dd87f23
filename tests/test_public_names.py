"""What users import exists, is documented, and costs nothing until it is used."""

import subprocess
import sys

import loaderbench


def test_every_public_name_is_there_and_documented() -> None:
    for name in loaderbench.__all__:
        assert getattr(loaderbench, name).__doc__


def test_an_unknown_name_is_an_attribute_error() -> None:
    assert not hasattr(loaderbench, "nothing_of_this_name")


def test_importing_the_package_imports_neither_torch_nor_pandas() -> None:
    code = "import loaderbench, sys; print(sorted({'torch', 'pandas', 'plotly', 'scipy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


def test_importing_the_profiler_waits_with_what_only_a_recording_needs() -> None:
    """In a user's own script every import is paid for, also where nothing is recorded."""
    code = "from loaderbench import Profiler; import sys; print([name for name in sys.modules if name in %r])"
    late = ("torch", "numpy", "psutil", "loaderbench.records", "loaderbench.profiler.observer")
    found = subprocess.run([sys.executable, "-c", code % (late,)], capture_output=True, text=True, check=True)
    assert found.stdout == "[]\n"


def test_the_package_tells_its_version_and_its_names() -> None:
    assert loaderbench.__version__.count(".") == 2
    assert set(loaderbench.__all__) <= set(dir(loaderbench))

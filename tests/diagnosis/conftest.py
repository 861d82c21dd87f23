import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "report"))  # the runs that the report's tests make up

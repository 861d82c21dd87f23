"""From what was measured to what it means: pure, so that a saved run can be concluded again."""

from loaderbench.conclusion.candidates import candidates, subject_of
from loaderbench.conclusion.conclude import conclude, conclude_again
from loaderbench.conclusion.measured import Measured

__all__ = ["Measured", "candidates", "conclude", "conclude_again", "subject_of"]

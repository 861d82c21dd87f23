"""Pure statistics and diagnosis over records: nothing is measured, read or imported from torch here."""

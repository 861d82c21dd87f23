"""The things under test that samples come from; torch is imported only where a sample is made."""

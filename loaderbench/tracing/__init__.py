"""Times the stages inside a loader, with nothing of the user's or of torch changed. Import from the submodules."""

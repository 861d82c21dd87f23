"""Times the stages inside a loader without changing user code or torch. Import from the submodules."""

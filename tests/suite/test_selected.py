"""Which configurations flags select."""

from pathlib import Path

from loaderbench.suite import Override, load_suite


def test_a_baseline_that_flags_leave_out_of_an_axis_is_not_selected(tmp_path: Path) -> None:
    (tmp_path / "s.yaml").write_text("sweep: {decoder: [pillow, torchvision]}\nbaseline: {decoder: pillow}\n")

    def baseline(value: object) -> dict[str, object]:
        flag = Override(("sweep", "decoder"), value, "-P")
        return dict(load_suite(tmp_path / "s.yaml", [flag]).selected().suite.baseline)

    assert baseline(["torchvision"]) == {}
    assert baseline(["torchvision", "pillow"]) == {"decoder": "pillow"}

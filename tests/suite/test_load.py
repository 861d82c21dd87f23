"""A suite is read safely, and what is wrong with it is said in one line that can be clicked on."""

from pathlib import Path

import pytest

from loaderbench.commands.overrides import load_with_flags
from loaderbench.datasets.image_folder import ImageFolder
from loaderbench.datasets.target import Target
from loaderbench.errors import MissingError, SuiteError
from loaderbench.suite import Override, load_suite

IMAGES = Path(__file__).parents[2] / "suites" / "images.yaml"


def write(folder: Path, text: str) -> Path:
    file = folder / "s.yaml"
    file.write_text(text)
    return file


WRONG = {
    "a: 1": "1:1: a: unknown key; valid keys: name, dataset",
    "": "1:1: empty; `loaderbench init` writes a suite",
    "- 1": "1:1: expected a mapping of keys, got a list",
    "x: [1": "1:6: not valid YAML",
    "\t- x: 1": "1:1: not valid YAML",
    "name: 3": "1:7: name: expected a string, got 3",
    "name: a\nname: b": "2:1: name: duplicate key (first on line 1)",
    "sweep: 3": "1:8: sweep: expected a mapping, got 3",
    "sweep:\n  batch_sise: [1]": "2:3: sweep.batch_sise: unknown axis; neither a DataLoader argument nor "
    "a dataset option; did you mean batch_size?",
    "sweep: {generate: [1]}": "1:9: sweep.generate: cannot be an axis; set one value under dataset",
    "sweep: {sample: [10, 0]}": "1:22: sweep.sample[1]: expected an integer from 1 to 1,000,000,000, got 0",
    "sweep: {root: [a, 2024]}": "1:19: sweep.root[1]: expected a string or null, got 2024",
    "dataset: {kind: target}\nsweep: {target: ['a:c', x]}": "2:25: sweep.target[1]: expected "
    "package.module:name, got 'x'",
    "dataset: {kind: target, target: 'a:b'}\nsweep: {target: ['a:c']}": "1:25: dataset.target: also an axis under "
    "sweep; remove one of the two",
    "dataset: {root: a}\nsweep: {root: [b]}": "1:11: dataset.root: also an axis under sweep; remove one of the two",
    "sweep: {kind: [target]}": "1:9: sweep.kind: cannot be an axis; set one value under dataset",
    "sweep:\n  batch_size: []": "2:15: sweep.batch_size: empty list; add the values to measure",
    "sweep: {num_workers: [0, -1]}": "1:26: sweep.num_workers[1]: expected an integer from 0 to 1,024, got -1",
    "sweep: {pin_memory: [yes]}": "1:22: sweep.pin_memory[0]: expected true or false, got 'yes'",
    "sweep: {transform: [nope]}": "1:21: sweep.transform[0]: expected imagenet_train",
    "measure:\n  rounds: three": "2:11: measure.rounds: expected an integer, got 'three'",
    "measure: {rounds: true}": "1:19: measure.rounds: expected an integer, got true",
    "measure: {rounds: 1.5}": "1:19: measure.rounds: expected an integer, got 1.5",
    "measure: {rounds: 0}": "1:19: measure.rounds: expected a value greater than 0, got 0",
    "measure:\n  rouds: 3": "2:3: measure.rouds: unknown key; did you mean rounds?",
    "measure: {seconds: .nan}": "1:20: measure.seconds: expected a finite number, got nan",
    "measure: {seconds: 400}": "1:20: measure.seconds: needs a time limit of at least 800 s for a trial; "
    "raise measure.timeout_s (300)",
    "dataset: {kind: target, target: 'a:b'}\nmeasure: {cache: cold}": "2:18: measure.cache: unknown which files "
    "a target reads, so the page cache cannot be set; remove `cache: cold`",
    "measure: {budget: 10q}": "1:19: measure.budget: expected a duration such as 90s, 10m or "
    "1h30m, or seconds, got '10q'",
    "measure: {strategy: gird}": "1:21: measure.strategy: expected grid or adaptive, got 'gird'; did you mean grid?",
    "dataset: {kind: imagefolder}": "1:17: dataset.kind: expected image_folder or target, got 'imagefolder'; "
    "did you mean image_folder?",
    "dataset: {kind: target}": "1:10: dataset: missing key target",
    "dataset: {kind: target, target: x}": "1:33: dataset.target: expected package.module:name, got 'x'",
    "sweep: {drop_last: [true, 1]}": "1:27: sweep.drop_last[1]: duplicate value: 1 equals true in Python",
    "sweep: {transform: [null]}": "1:21: sweep.transform[0]: expected a string, got null",
    "dataset: {decoder: pilow}": "1:20: dataset.decoder: expected pillow, pillow_draft, pillow_lazy, "
    "torchvision, simplejpeg, nvimagecodec, device or dali, got 'pilow'; did you mean pillow?",
    "dataset: {kind: target, target: 'a:b', root: x}": "1:40: dataset.root: belongs to "
    "`kind: image_folder`; set that kind, or remove the key",
    "dataset: {target: 'a:b'}": "1:11: dataset.target: belongs to `kind: target`; set that kind, or remove the key",
    "dataset: {kind: target, target: 'a:b', arg: {}}": "1:40: dataset.arg: unknown key; did you mean args?",
    "consumer: {model: resnet5O}": "1:19: consumer.model: torchvision has no classifier 'resnet5O'; "
    "did you mean resnet50?",
    "consumer: {kind: model, model: vit_small}": "1:32: consumer.model: torchvision has no classifier 'vit_small'",
    "sweep: {threads: auto}": "1:18: sweep.threads: auto needs one of these under loader: threads, spdl,",
    "sweep: {threads: [1, 2]}": "1:9: sweep.threads: unknown axis; neither a DataLoader argument nor a dataset option; "
    "an argument of loader: threads, spdl,",
    "dataset: {kind: target, target: 'a:b'}\nsweep: {threads: auto}": "2:18: sweep.threads: auto needs one of these",
    "sweep: {collate_fn: ['a:b']}": "1:9: sweep.collate_fn: needs a Python object; return a DataLoader that has it",
    "dataset: {kind: target, target: 'a:b'}\nloader: {sampler: 'a:b'}": "2:10: loader.sampler: needs a Python object;",
    "dataset: {sampel: 3}": "1:11: dataset.sampel: unknown key; did you mean sample?",
    "dataset: {root: '${LB_NOT_SET}'}": "1:17: dataset.root: environment variable LB_NOT_SET is not set",
    "dataset: !!python/object/apply:os.system {}": "1:10: dataset: tag tag:yaml.org,2002:python/object",
    "name: !!python/name:os.system x": "1:7: name: tag",
    "consumer: {kind: emulate}": "1:18: consumer.kind: expected auto, none, emulated",
    "consumer: {accelerator: a1000}": "1:25: consumer.accelerator: no training rate for 'a1000'; did you mean a100? "
    "Known: a10, a100,",
    "consumer:\n  accelerator: 4090": "2:16: consumer.accelerator: expected a string, got 4090",
    "consumer: {demand: 5, accelerator: a100}": "1:23: consumer.accelerator: cannot be combined with `demand`: "
    "both set the target; drop one of them",
    "consumer: {kind: model, accelerator: a100}": "1:25: consumer.accelerator: has no effect on `kind: model`; "
    "use `kind: emulated`, or drop it",
    "consumer: {accelerator: h100, model: resnet34}": "1:38: consumer.model: no training rate for 'resnet34' on H100; "
    "available: ResNet-50 (mixed)",
    "consumer: {accelerator: a100, precision: int8}": "1:42: consumer.precision: no training rate in 'int8' "
    "for ResNet-50 on A100; available: ResNet-50 (mixed or tf32)",
    "consumer: {kind: emulated, precision: fp32}": "1:28: consumer.precision: has no effect without `accelerator`; "
    "set both, or drop it",
    "consumer: {kind: target}": "1:11: consumer: kind: target needs",
    "loader: {shuffle: 1}": "1:19: loader.shuffle: expected true or false, got 1",
    "loader: {batch_size: 4}\nsweep: {batch_size: [4]}": "1:10: loader.batch_size: also an axis under sweep",
    "baseline: {num_workers: 1}": (
        "1:12: baseline.num_workers: is 0 in every config; to compare it with 1, add it under sweep"
    ),
    "baseline: {decoder: torchvision}": (
        "1:12: baseline.decoder: is 'pillow' in every config; to compare it with 'torchvision', add it under sweep"
    ),
    "baseline: {persistent_workers: true}": "1:12: baseline.persistent_workers: not an axis under sweep; add it there",
    "sweep: {num_workers: [0, 1]}\nbaseline: {num_worker: 1}": (
        "2:12: baseline.num_worker: not an axis under sweep; did you mean num_workers?"
    ),
    "a: &a [*a]": "1:4: a",
    "name: ''": "1:7: name: expected a string of 1 or more characters, got ''",
    "dataset: {generate: {images: 1}}": "1:30: dataset.generate.images: expected 2 or more, got 1",
    "dataset: {generate: {images: 1000001}}": "1:30: dataset.generate.images: expected 1,000,000 or less, got 1000001",
    "consumer: {demand: 0}": "1:20: consumer.demand: expected a value greater than 0, got 0",
    "measure: {seed: 4294967297}": "1:17: measure.seed: expected 4,294,967,296 or less, got 4294967297",
    "dataset: {generate: {seed: 4294967297}}": "1:28: dataset.generate.seed: expected 4,294,967,296 or less",
    "sweep: {num_workers: [1025]}": "1:23: sweep.num_workers[0]: expected an integer from 0 to 1,024, got 1025",
    "loader: {prefetch_factor: 1025}": "1:27: loader.prefetch_factor: expected an integer from 1 to 1,024, got 1025",
    "dataset: {transform: imagenet_train_scaled}\nsweep: {decoder: [1]}": "2:19: sweep.decoder[0]: expected pillow,",
    "dataset: {transform: imagenet_train_scaled}\nsweep: {decoder: null}": "2:18: sweep.decoder: expected pillow,",
    "dataset: {transform: imagenet_train_scaled}\nsweep: {decoder: true}": "2:18: sweep.decoder: expected pillow,",
    "sweep: {decoder: [device], transform: [{a: 1}]}": "1:40: sweep.transform[0]: expected a string, got a mapping",
    "dataset: {transform: imagenet_train_scaled}\nsweep: {decoder: [1, dali]}": "1:1: dataset: decoder dali cannot be "
    "combined with transform imagenet_train_scaled; drop one of them (and 1 more)",
    "measure: {budget: 99999999999999999999999999999999h}": "1:19: measure.budget: expected a number between 1e-30 "
    "and 1e+30 in magnitude, got 3.6e+35",
    f"measure: {{budget: {'9' * 400}s}}": "1:19: measure.budget: expected a number between 1e-30 and 1e+30 in "
    "magnitude, got inf",
    "loader: {batch_size: 1000001}": "1:22: loader.batch_size: expected an integer from 1 to 1,000,000, got 1000001",
}


@pytest.mark.parametrize(("text", "line"), WRONG.items())
def test_each_mistake_is_one_line_with_its_place(tmp_path: Path, text: str, line: str) -> None:
    file = write(tmp_path, text)
    with pytest.raises(SuiteError) as caught:
        load_suite(file)
    message = str(caught.value)
    assert message.startswith(f"{file}:{line}")
    assert "\n" not in message
    assert caught.value.exit_code == 2


def test_a_baseline_may_repeat_what_every_config_has(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        "loader: {shuffle: true}\nsweep: {batch_size: [4, 8]}\n"
        "baseline: {batch_size: 4, shuffle: true, num_workers: 0, pin_memory: false, decoder: pillow}\n",
    )
    assert load_suite(file).suite.baseline["batch_size"] == 4


def test_several_mistakes_are_counted_and_the_first_of_the_file_is_shown(tmp_path: Path) -> None:
    with pytest.raises(SuiteError, match=r"s.yaml:2:11: .*\(and 1 more\)"):
        load_suite(write(tmp_path, "measure:\n  rounds: x\n  seconds: y\n"))


def test_the_suite_of_the_main_job_is_right_and_imports_nothing() -> None:
    suite = load_suite(IMAGES).suite
    assert suite.name == "images"
    assert isinstance(suite.dataset, ImageFolder)
    assert suite.sweep["num_workers"] == "auto"


def test_a_variable_of_the_environment_keeps_its_type_unless_it_is_quoted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LB_ROUNDS", "7")
    file = write(tmp_path, "name: '${LB_ROUNDS}'\nmeasure:\n  rounds: ${LB_ROUNDS}\n  seconds: ${LB_NO:-0.5}\n")
    suite = load_suite(file).suite
    assert (suite.name, suite.measure.rounds, suite.measure.seconds) == ("7", 7, 0.5)


@pytest.mark.parametrize("given", ["2024", "~", "null", "12e4567", "true"])
def test_a_name_and_a_folder_from_the_environment_stay_text(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    monkeypatch.setenv("LB_TEXT", given)
    suite = load_suite(write(tmp_path, "name: ${LB_TEXT}\ndataset:\n  root: ${LB_TEXT:-}\n")).suite
    assert (suite.name, getattr(suite.dataset, "root", None)) == (given, given)


def test_a_variable_between_braces_needs_no_quotes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LB_WORKERS", "2")
    text = "measure: {rounds: ${LB_NO:-5}, seconds: 0.5}\nsweep: {num_workers: [0, ${LB_WORKERS}]}"
    suite = load_suite(write(tmp_path, f"{text}\nname: ${{LB_NO:-a,b}}\n# ${{LB_NO:-\nbaseline: {{}}\n")).suite
    assert (suite.name, suite.measure.rounds, suite.measure.seconds) == ("a,b", 5, 0.5)
    assert suite.sweep["num_workers"] == [0, 2]
    assert refusal(tmp_path, "measure: {rounds: ${LB_NO:-x}, secs: 1}").startswith("1:19: measure.rounds: expected an")


def test_an_empty_variable_means_no_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LB_DATA", "")
    dataset = load_suite(write(tmp_path, "dataset:\n  root: ${LB_DATA:-}\n")).suite.dataset
    assert isinstance(dataset, ImageFolder)
    assert dataset.root is None


def test_any_argument_of_a_target_s_own_is_an_axis_though_a_folder_has_an_option_of_that_name(tmp_path: Path) -> None:
    text = "dataset: {kind: target, target: 'a:b'}\nsweep: {transform: [null, light, 2], decoder: [mine]}"
    assert load_suite(write(tmp_path, text)).suite.sweep == {"transform": [None, "light", 2], "decoder": ["mine"]}


def test_a_flag_overrides_the_file_and_is_named_when_it_is_wrong() -> None:
    flag = "-P num_workers=0,x"
    with pytest.raises(SuiteError, match=f"^{flag}: expected an integer from 0 to 1,024, got 'x'"):
        load_suite(IMAGES, [Override(("sweep", "num_workers"), [0, "x"], flag)])
    suite = load_suite(IMAGES, [Override(("measure", "rounds"), 1, "--rounds 1")]).suite
    assert suite.measure.rounds == 1


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("measure", "seconds"), 1e-40, "expected a number between 1e-30 and 1e+30 in magnitude, got 1e-40"),
        (("measure", "timeout_s"), 1e31, "expected a number between 1e-30 and 1e+30 in magnitude, got 1e+31"),
        (("measure", "budget"), "1" + "0" * 31, "expected a number between 1e-30 and 1e+30 in magnitude, got 1e+31"),
        (("measure", "rounds"), 10**30, "integer of more than 63 bits"),
        (("measure", "rounds"), 10**310, "integer of more than 63 bits"),
        (("dataset", "sample"), 2**63, "integer of more than 63 bits"),
        (("consumer", "demand"), 1e-31, "expected a number between 1e-30 and 1e+30 in magnitude, got 1e-31"),
        (("sweep", "timeout"), [1e-40], "expected a number between 1e-30 and 1e+30 in magnitude, got 1e-40"),
    ],
)
def test_a_number_of_a_flag_has_the_limits_of_one_in_a_file(path: tuple[str, str], value: object, said: str) -> None:
    with pytest.raises(SuiteError) as caught:
        load_suite(IMAGES, [Override(path, value, "--flag")])
    assert str(caught.value) == f"--flag: {said}"


def test_a_value_of_a_target_s_own_axis_has_the_limits_of_a_number_in_a_file(tmp_path: Path) -> None:
    file = write(tmp_path, "dataset: {kind: target, target: 'a:b'}")
    with pytest.raises(SuiteError, match=r"^axes: integer of more than 63 bits$"):
        load_suite(file, [Override(("sweep", "scale"), [2**63], "axes")])


def test_a_target_may_be_swept_over_names_of_its_own(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, "dataset: {target: 'm:f', kind: target}\nsweep: {backend: [a, b]}")).suite
    assert isinstance(suite.dataset, Target)
    assert suite.sweep == {"backend": ["a", "b"]}


def test_the_name_is_the_file_s_when_none_is_given(tmp_path: Path) -> None:
    assert load_suite(write(tmp_path, "measure: {rounds: 1}")).suite.name == "s"


@pytest.mark.parametrize(("text", "seconds"), [("10m", 600), ("90s", 90), ("1h30m", 5400), ("45", 45)])
def test_a_budget_is_read_as_people_write_it(tmp_path: Path, text: str, seconds: float) -> None:
    assert load_suite(write(tmp_path, f"measure: {{budget: {text}}}")).suite.measure.budget == seconds


def test_a_missing_binary_or_unreadable_file_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "b.yaml").write_bytes(b"\xff\xfe\x00")
    for file, word in ((tmp_path / "none.yaml", "no such file"), (tmp_path / "b.yaml", "UTF-8"), (tmp_path, "read")):
        with pytest.raises(SuiteError, match=word):
            load_suite(file)


def refusal(folder: Path, text: str) -> str:
    """The line that refuses a suite, without the file's name."""
    file = write(folder, text)
    with pytest.raises(SuiteError) as caught:
        load_suite(file)
    return str(caught.value).removeprefix(f"{file}:")


BIG = "sweep: {{batch_size: {0}, num_workers: {0}, prefetch_factor: {0}, timeout: {0}}}"


def test_a_sweep_of_more_configurations_than_can_be_measured_is_refused_at_once(tmp_path: Path) -> None:
    line = refusal(tmp_path, BIG.format(list(range(1, 101))))
    assert line == "1:8: sweep: 100,000,000 configs; the limit is 10,000"


def test_auto_counts_as_the_six_values_that_it_may_become(tmp_path: Path) -> None:
    text = "sweep: {num_workers: auto, batch_size: %s}"
    assert load_suite(write(tmp_path, text % list(range(1, 1667)))).suite.sweep["num_workers"] == "auto"
    assert "10,002 configs" in refusal(tmp_path, text % list(range(1, 1668)))


def test_a_value_that_stands_twice_is_counted_once(tmp_path: Path) -> None:
    suite = load_suite(write(tmp_path, BIG.format([1] * 100))).suite
    assert len(suite.sweep["timeout"]) == 100


@pytest.mark.parametrize(("given", "shown"), [("[1]", "a list"), ("{a: 1}", "a mapping")])
@pytest.mark.parametrize("part", ["loader", "baseline"])
def test_a_value_that_is_not_plain_is_one_problem(tmp_path: Path, part: str, given: str, shown: str) -> None:
    column = len(f"{part}: {{batch_size: ") + 1
    line = refusal(tmp_path, f"{part}: {{batch_size: {given}}}")
    assert line == f"1:{column}: {part}.batch_size: expected a single value, got {shown}"


def test_the_largest_seed_is_accepted(tmp_path: Path) -> None:
    assert load_suite(write(tmp_path, f"measure: {{seed: {2**32}}}")).suite.measure.seed == 2**32


def test_a_byte_order_mark_and_windows_line_ends_are_read_as_if_absent(tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_bytes(b"\xef\xbb\xbfname: a\r\nmeasure:\r\n  rounds: 2\r\n")
    suite = load_suite(file).suite
    assert (suite.name, suite.measure.rounds) == ("a", 2)


def test_a_byte_order_mark_moves_no_column(tmp_path: Path) -> None:
    assert refusal(tmp_path, "\ufeffnam: a").startswith("1:1: nam: unknown key")


@pytest.mark.parametrize("key", [r"a\nb", r"a\rb", r"a\x1bb", r"a\u2028b"])
def test_a_key_with_control_characters_is_shown_escaped_on_one_line(tmp_path: Path, key: str) -> None:
    assert refusal(tmp_path, f'"{key}": 1').startswith(f"1:1: {key}: unknown key")


def test_a_flag_with_control_characters_is_shown_escaped_on_one_line() -> None:
    with pytest.raises(SuiteError, match=r"^-P a\\nb=1: not a valid argument name|^-P a\\nb=1: unknown axis"):
        load_suite(IMAGES, [Override(("sweep", "a\nb"), [1], "-P a\nb=1")])


def test_an_axis_with_its_section_is_refused_with_its_own_name() -> None:
    with pytest.raises(SuiteError, match=r"^-P dataset.format=tar: not a valid argument name; write format, without"):
        load_suite(IMAGES, [Override(("sweep", "dataset.format"), ["tar"], "-P dataset.format=tar")])


def test_an_option_of_another_kind_of_consumer_is_a_warning_with_its_place(tmp_path: Path) -> None:
    text = "name: a\nconsumer:\n  kind: emulated\n  demand: 5\n  optimizer: adam\n  device: cuda\n"
    file = write(tmp_path, text)
    (said,) = load_suite(file).warnings
    assert said == f"{file}:5:3: consumer.optimizer: ignored: an option of `kind: model`, not of `kind: emulated`"
    assert load_suite(write(tmp_path, text.replace("emulated", "auto"))).warnings == ()


def test_a_flag_that_leaves_out_a_loader_leaves_out_its_axes(tmp_path: Path) -> None:
    text = "sweep: {loader: [torch, threads], num_workers: [1], threads: [2, 4]}\nbaseline: {threads: 2}\n"
    file = write(tmp_path, text)
    assert load_suite(file).suite.baseline == {"threads": 2}
    narrowed = load_suite(file, [Override(("sweep", "loader"), ["torch"], "-P loader=torch")]).suite
    assert (narrowed.sweep, narrowed.baseline) == ({"loader": ["torch"], "num_workers": [1]}, {})
    flags = [("loader", ["torch"]), ("threads", [4])]
    with pytest.raises(SuiteError, match=r"^-P threads: unknown axis"):
        load_suite(file, [Override(("sweep", axis), values, f"-P {axis}") for axis, values in flags])


def test_an_axis_that_no_loader_of_the_suite_takes_stays_wrong(tmp_path: Path) -> None:
    file = write(tmp_path, "sweep: {loader: [torch], threads: [2]}\n")
    with pytest.raises(SuiteError, match=r"sweep.threads: unknown axis"):
        load_suite(file, [Override(("sweep", "loader"), ["torch"], "-P loader=torch")])


@pytest.mark.parametrize(
    ("text", "value", "place"),
    [
        ("dataset: {root: nowhere}", "nowhere", "{file}:1:17: dataset.root: no such folder"),
        ("sweep:\n  root: [a, nowhere]", "nowhere", "{file}:2:13: sweep.root[1]: no such folder"),
        ("dataset:\n  kind: target\n  target: m:f", "m:f", "{file}:3:11: dataset.target: no such folder"),
        ("name: nowhere\ndataset: {root: nowhere}", "nowhere", "{file}:2:17: dataset.root: no such folder"),
        ("baseline: {root: b}\nsweep: {root: [a, b]}", "b", "{file}:1:18: baseline.root: no such folder"),
        (
            "dataset: {kind: target, args: {root: m:f}, target: m:f}",
            "m:f",
            "{file}:1:52: dataset.target: no such folder",
        ),
        ("name: s", "nowhere", "no such folder"),
        ("name: s", None, "no such folder"),
    ],
)
def test_what_is_missing_is_said_with_the_place_that_asks_for_it(
    tmp_path: Path, text: str, value: str | None, place: str
) -> None:
    file = tmp_path / "s.yaml"
    file.write_text(text)
    with pytest.raises(MissingError) as found, load_suite(file).saying_where():
        raise MissingError("no such folder", value)
    assert str(found.value) == place.format(file=file)


def test_what_is_missing_is_said_with_the_flag_that_asks_for_it(tmp_path: Path) -> None:
    file = tmp_path / "s.yaml"
    file.write_text("sweep: {root: [a, b]}\nbaseline: {root: a}")
    loaded = load_suite(file, [Override(("dataset", "root"), "/nowhere", "--data nowhere")])
    assert loaded.suite.sweep == loaded.suite.baseline == {}
    with pytest.raises(MissingError, match=r"^--data nowhere: no such folder$"), loaded.saying_where():
        raise MissingError("no such folder", "/nowhere")


def test_a_folder_of_an_axis_can_be_named_like_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A", "2023")
    monkeypatch.setenv("B", "2024")
    (tmp_path / "s.yaml").write_text("sweep: {root: ['${A}', ${B}], batch_size: ['${A}']}\nbaseline: {root: ${A}}")
    with pytest.raises(SuiteError, match="batch_size"):  # no text
        load_suite(tmp_path / "s.yaml")
    (tmp_path / "s.yaml").write_text("sweep: {root: [${A}, ${B}], batch_size: [${A}]}\nbaseline: {root: ${A}}")
    loaded = load_with_flags(tmp_path / "s.yaml", data=None, axes=["transform=m:f"], measure={})
    assert (loaded.suite.sweep["root"], loaded.suite.sweep["batch_size"]) == (["2023", "2024"], [2023])
    assert loaded.suite.baseline["root"] == "2023"
    flagged = load_with_flags(tmp_path / "s.yaml", data=None, axes=["root=2023,b"], measure={})
    assert flagged.suite.sweep["root"] == ["2023", "b"]

"""The diff that sets arguments in the call that makes a loader."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from loaderbench.code_places import CodeLine
from loaderbench.tuning.edit import diff_of_call

CHANGES = {"num_workers": 4, "persistent_workers": True}


def edited(
    tmp_path: Path, source: str, line: int, changes: dict[str, object] | None = None, library: str = ""
) -> str | None:
    """The script after the diff was applied by hand; `None` without a diff."""
    file = tmp_path / "train.py"
    file.write_text(source)
    diff = diff_of_call(CodeLine(str(file), line, library), changes or CHANGES)  # type: ignore[arg-type]
    if diff is None:
        return None
    assert diff.splitlines()[1] == "+++ train.py, tuned"
    return "\n".join(applied(source.splitlines(), diff.splitlines()[2:]))


def applied(lines: list[str], diff: list[str]) -> list[str]:
    """The lines after a unified diff; what it leaves or takes away has to be there."""
    found, at = list[str](), 0
    for text in diff:
        if begin := re.match(r"@@ -(\d+)", text):
            until = int(begin[1]) - 1
            found += lines[at:until]
            at = until
            continue
        if text[0] in " -":
            assert lines[at] == text[1:]
            at += 1
        if text[0] in " +":
            found.append(text[1:])
    return found + lines[at:]


@pytest.mark.parametrize(
    ("source", "line", "wanted"),
    [
        ("a = DataLoader(d)", 1, "a = DataLoader(d, num_workers=4, persistent_workers=True)"),
        (
            "a = DataLoader(d, num_workers=0, shuffle=True)",
            1,
            "a = DataLoader(d, num_workers=4, shuffle=True, persistent_workers=True)",
        ),
        (
            "a = DataLoader(d, num_workers=args.workers)",
            1,
            "a = DataLoader(d, num_workers=4, persistent_workers=True)",
        ),
        (
            "x = 1\na = data.DataLoader(\n    d,\n    batch_size=3,\n)",
            2,
            "x = 1\na = data.DataLoader(\n    d,\n    batch_size=3, num_workers=4, persistent_workers=True,\n)",
        ),
        (
            "é = 'ü'; a = DataLoader(d, name='é')",
            1,
            "é = 'ü'; a = DataLoader(d, name='é', num_workers=4, persistent_workers=True)",
        ),
        (
            "train(DataLoader(d), 3)",
            1,
            "train(DataLoader(d, num_workers=4, persistent_workers=True), 3)",
        ),
        (
            "a = MyLoader(d, 8, num_workers=0, persistent_workers=False)",
            1,
            "a = MyLoader(d, 8, num_workers=4, persistent_workers=True)",
        ),
        (
            "a = DataLoader(d, 8, True, None, None, 0)",
            1,
            "a = DataLoader(d, 8, True, None, None, 4, persistent_workers=True)",
        ),
        (
            "a = DataLoader(ImageLoader('p'), batch_size=8)",
            1,
            "a = DataLoader(ImageLoader('p'), batch_size=8, num_workers=4, persistent_workers=True)",
        ),
        ("a = DataLoader((d))", 1, "a = DataLoader((d), num_workers=4, persistent_workers=True)"),
    ],
)
def test_arguments_are_set_in_the_call_of_this_line(tmp_path: Path, source: str, line: int, wanted: str) -> None:
    assert edited(tmp_path, source, line) == wanted


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("a = make(d)", 1),  # no loader's name
        ("a = DataLoader(d, **options)", 1),  # its keywords are elsewhere
        ("a = 1\na = DataLoader(d)", 1),  # another line
        ("a = DataLoader(", 1),  # not the text that ran
        ("a = DataLoader()", 1),
        ("a = DataLoader(*parts)", 1),
        ("a = DataLoader(i for i in d)", 1),
        ("a, b = DataLoader(d), DataLoader(e)", 1),  # either of two
        ("a = FastLoader(d, 4, 32)", 1),  # its third argument may be num_workers
        ("a = FastLoader(d, num_workers=0)", 1),  # it may not accept persistent_workers
        ("a = MyDataLoader(dataset=d)", 1),
        ("a = DataLoader(d, num_workers=4, persistent_workers=True)", 1),  # nothing to change
    ],
)
def test_there_is_no_diff_where_the_call_cannot_be_found(tmp_path: Path, source: str, line: int) -> None:
    assert edited(tmp_path, source, line) is None


@pytest.mark.parametrize(
    ("source", "wanted"),
    [
        (
            "a = create(\n    d, num_workers=1, persistent_workers=False)",
            "a = create(\n    d, num_workers=4, persistent_workers=True)",
        ),
        (
            "a = wrap(create(\nd, num_workers=n, persistent_workers=p), size=2)",
            "a = wrap(create(\nd, num_workers=4, persistent_workers=True), size=2)",
        ),
        ("a = create(\n    d, num_workers=1)", None),
        ("a = create(\n    d, **more)", None),
        ("a = [make(d, num_workers=1, persistent_workers=0), make(\nd, num_workers=2, persistent_workers=0)]", None),
    ],
)
def test_only_keywords_that_the_call_of_a_library_has_are_set(tmp_path: Path, source: str, wanted: str | None) -> None:
    found = edited(tmp_path, source, 2 if "make" not in source else 1, library="timm")
    assert found == wanted


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        ("'out', dataloader_num_workers=0", "'out', dataloader_num_workers=4, dataloader_persistent_workers=True"),
        ("output_dir='out'", "output_dir='out', dataloader_num_workers=4, dataloader_persistent_workers=True"),
    ],
)
def test_a_loader_of_hugging_face_has_the_diff_of_its_arguments(tmp_path: Path, arguments: str, wanted: str) -> None:
    source = "args = hf.Seq2SeqTrainingArguments({})\ntrainer = Trainer(model, args)\ntrainer.train()"
    assert edited(tmp_path, source.format(arguments), 3, library="transformers.trainer") == source.format(wanted)


@pytest.mark.parametrize(
    ("source", "changes"),
    [
        ("a = TrainingArguments('a')\nb = TrainingArguments('b')\nt.train()", {"num_workers": 2}),
        ("args = parser.parse()\n\nt.train()", {"num_workers": 2}),
        ("a = TrainingArguments('a')\n\nt.train()", {"in_order": False}),
        ("a = TrainingArguments(**b)\n\nt.train()", {"num_workers": 2}),
    ],
)
def test_unknown_arguments_of_hugging_face_have_no_diff(
    tmp_path: Path, source: str, changes: dict[str, object]
) -> None:
    assert edited(tmp_path, source, 3, changes, library="transformers.trainer") is None


def test_there_is_no_diff_for_a_library_and_none_for_a_file_that_is_gone(tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text("a = DataLoader(d)")
    assert diff_of_call(CodeLine(str(file), 1), CHANGES) is not None
    assert diff_of_call(CodeLine(str(file), 1, "timm"), CHANGES) is None
    file.unlink()
    assert diff_of_call(CodeLine(str(file), 1), CHANGES) is None


KEYWORDS = st.dictionaries(
    st.sampled_from(["num_workers", "prefetch_factor", "pin_memory", "persistent_workers", "batch_size"]),
    st.sampled_from(["0", "args.n", "f(1, (2, 3))", "'ä, )'", "{'a': [1]}"]),
)
VALUES = st.dictionaries(
    st.sampled_from(["num_workers", "prefetch_factor", "persistent_workers"]),
    st.one_of(st.integers(0, 99), st.booleans()),
    min_size=1,
)


@given(KEYWORDS, VALUES, st.sampled_from([", ", ",\n    ", ",  # why\n\t"]))
def test_the_edited_call_has_the_new_arguments_and_all_others_as_they_were(
    tmp_path_factory: pytest.TempPathFactory, given_: dict[str, str], changes: dict[str, object], between: str
) -> None:
    parts = ["d", *(f"{name}={text}" for name, text in given_.items())]
    source = f"before = 'é'\nloader = DataLoader({between.join(parts)})\nafter = DataLoader(d)"
    found = edited(tmp_path_factory.getbasetemp(), source, 2, changes)
    wanted = {**given_, **{name: repr(value) for name, value in changes.items()}}
    if found is None:
        assert wanted == given_
        return
    before, loader, after = ast.parse(found).body
    assert (ast.unparse(before), ast.unparse(after)) == ("before = 'é'", "after = DataLoader(d)")
    call = loader.value  # type: ignore[attr-defined]
    assert {one.arg: ast.unparse(one.value) for one in call.keywords} == {
        name: ast.unparse(ast.parse(text, mode="eval")) for name, text in wanted.items()
    }


@pytest.mark.parametrize("before", ["# a \u2028 separator", "\x0c", "x = 'a\x1cb'"])
def test_lines_are_those_of_python(tmp_path: Path, before: str) -> None:
    file = tmp_path / "train.py"
    file.write_text(f"{before}\na = DataLoader(d)\n")
    diff = diff_of_call(CodeLine(str(file), 2), CHANGES)
    assert diff is not None
    assert "+a = DataLoader(d, num_workers=4, persistent_workers=True)" in diff.split("\n")


def test_a_keyword_to_leave_out_is_no_reason_against_a_diff_of_another_loader(tmp_path: Path) -> None:
    found = edited(tmp_path, "a = FastLoader(d, num_workers=2)", 1, {"num_workers": 0, "prefetch_factor": None})
    assert found == "a = FastLoader(d, num_workers=0)"


def test_an_argument_to_leave_out_does_not_have_to_be_in_a_library_s_call(tmp_path: Path) -> None:
    changes = {"num_workers": 0, "prefetch_factor": None}
    found = edited(tmp_path, "a = create(d, num_workers=2)", 1, changes, library="timm.data")
    assert found == "a = create(d, num_workers=0)"


def test_another_loader_of_transformers_is_not_that_of_its_trainer(tmp_path: Path) -> None:
    source = "args = TrainingArguments('out')\npipe(data)"
    assert edited(tmp_path, source, 2, library="transformers.pipelines.base") is None


@pytest.mark.parametrize(
    ("changes", "wanted"),
    [
        ({"num_workers": 4}, "a = DataLoader(d, num_workers=4, **options)"),
        ({"num_workers": 4, "persistent_workers": True}, None),
        ({"num_workers": 0, "prefetch_factor": None}, None),
    ],
)
def test_keywords_of_a_call_with_others_elsewhere_are_set_if_the_call_has_all(
    tmp_path: Path, changes: dict[str, object], wanted: str | None
) -> None:
    assert edited(tmp_path, "a = DataLoader(d, num_workers=1, **options)", 1, changes) == wanted

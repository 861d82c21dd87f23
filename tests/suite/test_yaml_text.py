"""Whatever a text holds, it becomes plain values or one line that says what is wrong where."""

import pytest

from loaderbench.suite.yaml_text import Position, TextError, parse_text


def refusal(text: str) -> TextError:
    with pytest.raises(TextError) as caught:
        parse_text(text)
    return caught.value


@pytest.mark.parametrize(
    ("value", "what"),
    [
        ('!!int ""', "expected an integer, got ''"),
        ('!!float ""', "expected a number, got ''"),
        ("!!bool x", "expected true or false, got 'x'"),
        ('!!int "a\\nb"', "expected an integer, got 'a\\nb'"),
        ("!!map x", "expected a mapping, got 'x'"),
        ("!!seq x", "expected a list, got 'x'"),
    ],
)
@pytest.mark.parametrize("text", ["a: {}", "[{}]"])
def test_a_scalar_that_its_tag_does_not_fit_is_refused_in_one_line(text: str, value: str, what: str) -> None:
    assert refusal(text.replace("{}", value)).what == what


@pytest.mark.filterwarnings("ignore::ruamel.yaml.error.MantissaNoDotYAML1_1Warning")
def test_a_number_is_read_under_the_directive_of_an_older_yaml_too() -> None:
    assert parse_text("%YAML 1.1\n---\na: 1e3\n").value == {"a": 1000.0}


def test_an_escape_beyond_unicode_is_refused_in_one_line() -> None:
    what = refusal(r'a: "\UFFFFFFFF"').what
    assert what.startswith("not valid YAML: ")
    assert what.isprintable()


@pytest.mark.parametrize(
    ("value", "shown"), [(".inf", "inf"), ("-.inf", "-inf"), (".nan", "nan"), ("1e400", "inf"), ("-1e400", "-inf")]
)
@pytest.mark.parametrize("text", ["dataset: {args: {x: %s}}", "sweep: {x: [%s]}", "[%s]"])
def test_a_number_that_is_not_finite_is_refused_wherever_it_stands(text: str, value: str, shown: str) -> None:
    error = refusal(text % value)
    assert error.what == f"expected a finite number, got {shown}"
    assert error.position == Position(1, text.index("%") + 1)


def test_words_and_quoted_texts_that_look_like_infinity_stay_texts() -> None:
    assert parse_text("[inf, nan, '.inf']").value == ["inf", "nan", ".inf"]


@pytest.mark.parametrize("value", [str(2**63), str(-(2**63)), "0x" + "f" * 6000])
def test_a_whole_number_of_more_than_63_bits_is_refused(value: str) -> None:
    assert refusal(f"a: {value}").what == "integer of more than 63 bits"


@pytest.mark.parametrize("value", ["1_0", "1_0.5", "${LB_UNSET:-1_0}"])
def test_a_number_with_an_underscore_is_text_as_in_yaml_1_2(value: str) -> None:
    assert parse_text(f"a: {value}").value == {"a": value.removeprefix("${LB_UNSET:-").removesuffix("}")}


@pytest.mark.parametrize("value", ["${LB_A:-${LB_B}}", "'${LB_A:-${LB_B:-x}}'", "${LB_A:-x${LB_B}}"])
@pytest.mark.parametrize("found", [None, "set"])
def test_a_default_that_holds_another_variable_is_refused_whether_or_not_it_is_needed(
    monkeypatch: pytest.MonkeyPatch, value: str, found: str | None
) -> None:
    monkeypatch.setenv("LB_A", found) if found else monkeypatch.delenv("LB_A", raising=False)
    assert refusal(f"a: {value}").what.startswith("a default cannot contain another variable")


def test_a_variable_that_is_set_to_nothing_is_the_empty_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LB_EMPTY", "")
    assert parse_text("- '${LB_EMPTY}'\n- a${LB_EMPTY}b\n").value == ["", "ab"]


def test_an_unquoted_empty_variable_is_nothing_as_an_empty_value_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LB_EMPTY", "")
    assert parse_text("a: ${LB_EMPTY}\nb:\n").value == {"a": None, "b": None}


@pytest.mark.parametrize(("found", "value"), [(None, "x"), ("", "x"), ("y", "y")])
def test_a_default_stands_in_for_a_variable_that_is_unset_or_empty(
    monkeypatch: pytest.MonkeyPatch, found: str | None, value: str
) -> None:
    monkeypatch.delenv("LB_A", raising=False)
    if found is not None:
        monkeypatch.setenv("LB_A", found)
    assert parse_text("a: ${LB_A:-x}").value == {"a": value}


@pytest.mark.parametrize("value", ["${LB_A", "a ${", "'${1}'", "${LB A}", "${}"])
def test_what_only_begins_like_a_variable_is_refused(value: str) -> None:
    assert (
        refusal(f"a: {value}").what == f"not a variable: {value.strip(chr(39))}; write ${{NAME}} or ${{NAME:-default}}"
    )

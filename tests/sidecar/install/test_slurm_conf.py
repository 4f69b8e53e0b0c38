"""slurm.conf is changed in the words that must change and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest
from foretime_estimators.jobs.errors import InputError
from foretime_sidecar.install.slurm_conf import SlurmConf
from hypothesis import given
from hypothesis import strategies as st

KEY, WORD = "SchedulerParameters", "time_min_as_soft_limit"


def conf(folder: Path, text: str) -> SlurmConf:
    path = folder / "slurm.conf"
    path.write_bytes(text.encode())
    return SlurmConf(path)


CASES = {
    "A=1\n": f"A=1\n{KEY}={WORD}\n",
    "": f"{KEY}={WORD}\n",
    "A=1": f"A=1\n{KEY}={WORD}\n",
    "A=1\r\n": f"A=1\r\n{KEY}={WORD}\r\n",
    f"{KEY}=a=1,b\nB=2\n": f"{KEY}=a=1,b,{WORD}\nB=2\n",
    f"  {KEY.lower()} = a # why\n": f"  {KEY.lower()} = a,{WORD} # why\n",
    f"{KEY}=a,\\\nb\nB=2\n": f"{KEY}=a,\\\nb,{WORD}\nB=2\n",
    f'{KEY}="a,b"\n': f'{KEY}="a,b,{WORD}"\n',
    f"A=1 {KEY}=a B=2\n": f"A=1 {KEY}=a,{WORD} B=2\n",
    f"{KEY}=a\n{KEY}=b\n": f"{KEY}=a\n{KEY}=b,{WORD}\n",  # Slurm takes the last
    f"#{KEY}=a\n": f"#{KEY}=a\n{KEY}={WORD}\n",
    f"# {KEY}=x \\\n{KEY}=a\n": f"# {KEY}=x \\\n{KEY}=a,{WORD}\n",
    f"My{KEY}=a\n": f"My{KEY}=a\n{KEY}={WORD}\n",
    f"{KEY}=\n": f"{KEY}={WORD}\n",
}


@pytest.mark.parametrize("text", CASES)
def test_a_word_is_added_in_its_place(text: str, tmp_path: Path) -> None:
    changed = conf(tmp_path, text)
    changed.add(KEY, WORD)
    assert changed.texts[changed.path] == CASES[text]
    assert WORD in changed.words(KEY)
    changed.add(KEY, WORD.upper())
    assert changed.texts[changed.path] == CASES[text]
    changed.remove(KEY, WORD)
    assert WORD not in changed.words(KEY)
    assert conf(tmp_path, text).words(KEY) == changed.words(KEY)


@given(
    st.lists(
        st.sampled_from(
            ["A=1", f"{KEY}=a,b", "# so", f"#{KEY}=no", "B=2 C=3", f"{KEY}=a,\\\nb # x", "", "\\"]
        )
    )
)
def test_what_is_added_and_taken_out_again_leaves_all_else(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str]
) -> None:
    text = "".join(f"{line}\n" for line in lines)
    changed = conf(tmp_path_factory.mktemp("etc"), text)
    words = changed.words(KEY)
    changed.add(KEY, WORD)
    assert changed.words(KEY) == [*words, WORD]
    changed.remove(KEY, WORD)
    assert changed.words(KEY) == words
    if not words:
        assert changed.texts[changed.path] == text


def test_keys_are_found_in_included_files(tmp_path: Path) -> None:
    (tmp_path / "more.conf").write_text(f"{KEY}=a\n")
    main = conf(tmp_path, "Include more.conf\nInclude %c.conf\ninclude missing\nA=1\n")
    main.add(KEY, WORD)
    assert main.texts[tmp_path / "more.conf"] == f"{KEY}=a,{WORD}\n"
    assert main.texts[main.path].startswith("Include more.conf\n")
    main.set("A", "2")
    main.set("Z", "9")
    assert main.texts[main.path].endswith("A=2\nZ=9\n")
    main.unset("Z")
    main.unset("none")
    assert main.texts[main.path].endswith("A=2\n")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none: can't read .* --conf"):
        SlurmConf(tmp_path / "none")

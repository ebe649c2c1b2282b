"""The page of kernels by level: it is up to date, and every kernel for AVX2 has code for NEON."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.kernel_levels import FILE, INSTEAD, LEVELS, cells, forms, purpose, rows, text

ONLY_X86 = {"DotsInTiles", "InTiles", "int8::PairedForm"}


def test_the_page_is_generated_from_the_code() -> None:
    assert FILE.read_text() == text(), "`make generate` writes the page"


def test_each_file_with_code_for_avx2_has_code_for_neon() -> None:
    found = {row.path: row.cells for row in rows()}
    lacking = {path for path, each in found.items() if each["AVX2"] and not each["NEON"]}
    assert lacking == set(INSTEAD)
    assert all(found[other]["NEON"] for other in INSTEAD.values())


def test_only_forms_for_amx_and_for_pairs_of_numbers_lack_arm() -> None:
    """AMX has tiles, and AVX2 multiplies numbers of 16 bits in pairs: see `INSTEAD`."""
    found = list(forms())
    assert {processors for _, _, processors in found} == {"all", "ARM", "x86-64", "ARM, x86-64"}
    assert {name for _, name, processors in found if processors == "x86-64"} == ONLY_X86


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("fn sum() {}", ["", "", ""]),
        ("dispatch_isa!(isa, (x: &[f32] = x), V => sum::<V>(x))", ["generic", "generic", "generic"]),
        ('#[target_feature(enable = "avx2,fma")]\nfn sum() {}', ["", "own", ""]),
        ('// #[target_feature(enable = "avx2,fma")]', ["", "", ""]),
        ('compiled!(Vnni, tile, "avx512f,avx512vl,avx2,avx512vnni");', ["", "", "VNNI"]),
        ('#[target_feature(enable = "neon,i8mm")]\nfn sum() {}', ["i8mm", "", ""]),
        ("fn neon() { sum::<F32x4x2>() }\nfn avx2() { sum::<F32x8>() }", ["own", "own", ""]),
        ("pub(crate) use neon::F32x4x2;", ["", "", ""]),
        ('fn detect() -> bool { has!("avx2") }\nfn name() { match x { A => "neon" } }', ["", "", ""]),
        ('asm!("ldtilecfg [{}]")', ["", "", "AMX"]),
        ("fn a() {}\n#[cfg(test)]\nmod tests {\n    use F32x8;\n}", ["", "", ""]),
    ],
)
def test_code_is_found_by_level(code: str, expected: list[str]) -> None:
    assert [", ".join(cells(code)[level]) for level in LEVELS] == expected


@pytest.mark.parametrize(
    ("comment", "expected"),
    [
        ("//! Sums\n//! of [rows](crate::rows).\n//!\n//! More.\n", "Sums of rows"),
        ("//! Means. Not [`sums`].\n", "Means"),
        ("//! Planes of `[P, H, W]`, see [`Plane`].\n", "Planes of `[P, H, W]`, see `Plane`"),
        ("fn sum() {}", ""),
    ],
)
def test_the_purpose_is_the_first_sentence(comment: str, expected: str) -> None:
    assert purpose(comment) == expected


def test_files_of_tests_are_left_out(tmp_path: Path) -> None:
    for name in ("sum.rs", "tests.rs", "tests/large.rs"):
        (path := tmp_path / name).parent.mkdir(exist_ok=True)
        path.write_text("//! Sums.\nper_isa! {}\n")
    assert [(row.path, row.purpose) for row in rows(tmp_path)] == [("sum.rs", "Sums")]

use super::*;

/// A kernel with a header.
const HEADER: &str =
    "#include <cuda_fp16.h>\nconst u32 RANK = 8, FEW = 2;\nstruct Dims {\n    u32 rank;\n    u32 size[RANK];\n};";
const KERNEL: &str = r#"
#include "device.cuh"
// struct Both { comments are no code };
struct Both {
    // X: the input.
    u64 x, y;
    Dims dims;
    u32 count, steps[2];
    HOST_DEVICE u32 last() const {
        if (count) { return count - 1; }
        return 0;
    }
    i32 low, high;
    f64 scale;
};
"#;
/// The same structure in Rust, without `struct Both {` and the closing brace.
const FIELDS: &str = "x: u64, y: u64, dims: Dims, count: u32, steps: [u32; 2], low: i32, high: i32, scale: f64,";

/// Returns the errors of a structure with these fields. `change` alters the kernel.
fn errors_of(fields: &str, change: impl Fn(&str) -> String) -> Vec<String> {
    errors(&format!("#[repr(C)] #[kernel(Both in \"both.cu\")] struct BothParams {{ {fields} }}"), change)
}

fn errors(item: &str, change: impl Fn(&str) -> String) -> Vec<String> {
    let item = syn::parse_str(item).expect("Rust");
    let text = |file: &str| match file {
        "both.cu" => Ok(change(KERNEL)),
        "device.cuh" => Ok(HEADER.to_string()),
        _ => Err(format!("{file} cannot be read")),
    };
    match Structure::new(&item).and_then(|structure| checks(&structure, text)) {
        Ok(_) => vec![],
        Err(error) => error.into_iter().map(|error| error.to_string()).collect(),
    }
}

/// Returns the errors after a replacement in Rust.
fn after(from: &str, to: &str) -> Vec<String> {
    assert!(FIELDS.contains(from));
    errors_of(&FIELDS.replace(from, to), str::to_string)
}

const TWIN: &str = "the struct `Both` in both.cu";

#[test]
fn equal_structures_have_no_errors() {
    for (from, to) in [("scale", "scale"), ("scale: f64,", "scale: f64, padding: u32,"), ("count: u32", "count: i32")] {
        assert_eq!(after(from, to), [""; 0], "{to}");
    }
}

#[test]
fn swapped_fields_are_found() {
    let x = format!("`BothParams.y` is where {TWIN} has `x`");
    let y = format!("`BothParams.x` is where {TWIN} has `y`");
    assert_eq!(after("x: u64, y: u64", "y: u64, x: u64"), [x, y]);
    let steps = format!("`BothParams.steps` is where {TWIN} has `count`");
    let count = format!("`BothParams.count` is where {TWIN} has `steps`");
    assert_eq!(after("count: u32, steps: [u32; 2]", "steps: [u32; 2], count: u32"), [steps, count]);
}

#[test]
fn swapped_fields_of_the_kernel_are_found() {
    let low = format!("`BothParams.low` is where {TWIN} has `high`");
    let high = format!("`BothParams.high` is where {TWIN} has `low`");
    assert_eq!(errors_of(FIELDS, |text| text.replace("i32 low, high", "i32 high, low")), [low, high]);
}

#[test]
fn missing_extra_and_renamed_fields_are_found() {
    let missing = |name: &str| format!("`BothParams` has no field `{name}`, but {TWIN} does");
    assert_eq!(after("y: u64, ", ""), [missing("y")]);
    assert_eq!(after("scale: f64,", ""), [missing("scale")]);
    assert_eq!(after("low: i32, high: i32, ", ""), [missing("low"), missing("high")]);
    let extra = [format!("`BothParams.z` is not a field of {TWIN}")];
    assert_eq!(after("dims", "z: u64, dims"), extra);
    assert_eq!(after("f64,", "f64, z: u64"), extra);
    assert_eq!(after("y: u64", "z: u64"), [format!("`BothParams.z` is where {TWIN} has `y`")]);
}

#[test]
fn other_types_are_found() {
    let count = |kind| [format!("`BothParams.count` has the type {kind}, but `count` in {TWIN} has u32")];
    assert_eq!(after("count: u32", "count: f32"), count("f32"));
    assert_eq!(after("count: u32", "count: Dims"), count("Dims"));
    let dims = format!("`BothParams.dims` has the type u64, but `dims` in {TWIN} has Dims in device.cuh");
    assert_eq!(after("dims: Dims", "dims: u64"), [dims]);
    let steps = format!("`BothParams.steps` has the length 3, but 2 in {TWIN}");
    assert_eq!(after("steps: [u32; 2]", "steps: [u32; 3]"), [steps]);
}

#[test]
fn a_list_is_not_several_fields() {
    let limits = format!("`BothParams.limits` is where {TWIN} has `low`");
    let high = format!("`BothParams` has no field `high`, but {TWIN} does");
    assert_eq!(after("low: i32, high: i32", "limits: [i32; 2]"), [limits, high]);
    let low = format!("`BothParams.low` is where {TWIN} has `ends`");
    let high = format!("`BothParams.high` is not a field of {TWIN}");
    assert_eq!(errors_of(FIELDS, |text| text.replace("i32 low, high", "i32 ends[2]")), [low, high]);
    let nested = |text: &str| text.replace("steps[2]", "steps[2][FEW]");
    assert_eq!(errors_of(&FIELDS.replace("steps: [u32; 2]", "steps: [[u32; 2]; 2]"), nested), [""; 0]);
}

#[test]
fn the_compiler_checks_what_the_macro_does_not_know() {
    let item = "#[repr(C)] #[kernel(Dims in \"device.cuh\")] struct Bounds { rank: u32, size: [u32; MOST] }";
    let structure = Structure::new(&syn::parse_str(item).expect("Rust")).expect("a structure");
    let checks = checks(&structure, |_| Ok(HEADER.to_string())).expect("equal fields").to_string();
    for part in ["size_of :: < [u32 ; MOST] > () == 32usize", "offset_of ! (Bounds , size) == 4usize", "== 36usize"] {
        assert!(checks.contains(part), "{part}: {checks}");
    }
}

#[test]
fn structures_need_their_attributes() {
    let rest = format!("struct BothParams {{ {FIELDS} }}");
    let sentence = |text: &str| [format!("`BothParams` needs the attribute {text}")];
    let kernel = "#[kernel(Both in \"both.cu\")]";
    let repr = sentence("#[repr(C)], because the kernel's struct has the memory layout of C");
    for wrong in ["", "#[repr(C, packed)]", "#[repr(transparent)]"] {
        assert_eq!(errors(&format!("{wrong} {kernel} {rest}"), str::to_string), repr);
    }
    let missing = sentence("#[kernel(Struct in \"file.cu\")]");
    assert_eq!(errors(&format!("#[repr(C)] {rest}"), str::to_string), missing);
}

#[test]
fn structs_that_are_not_found_or_not_plain_are_refused() {
    let item = |kernel: &str| format!("#[repr(C)] #[kernel({kernel})] struct BothParams {{ {FIELDS} }}");
    for (kernel, end) in [
        ("None in \"both.cu\"", "both.cu has no struct `None`"),
        ("Dims in \"both.cu\"", "the struct `Dims` is in device.cuh, not in both.cu"),
        ("Both in \"none.cu\"", "none.cu cannot be read"),
    ] {
        assert_eq!(errors(&item(kernel), str::to_string), [format!("`BothParams`: {end}")]);
    }
    for (field, shown) in [
        ("u64* x", "u64 * x"),
        ("u64 x = 0", "u64 x = 0"),
        ("u32 x : 3", "u32 x : 3"),
        ("u32 x{0}", "u32 x { 0"),
        ("const u64 x", "const u64 x"),
        ("u32 x[RANK + 1]", "u32 x [ RANK + 1 ]"),
    ] {
        let refused = [format!("`BothParams`: {TWIN} has a field like `{shown}`")];
        assert_eq!(errors_of(FIELDS, |text| text.replace("u64 x, y", field)), refused);
    }
    let unknown = ["`BothParams`: both.cu does not state the number `MOST`, or states several"];
    assert_eq!(errors_of(FIELDS, |text| text.replace("steps[2]", "steps[MOST]")), unknown);
}

/// Returns what the macro writes about the kernels of a struct.
fn kernels_of(twin: &str, modules: &[(&str, &str)]) -> std::result::Result<String, String> {
    let item = format!("#[repr(C)] #[kernel({twin})] struct BothParams {{ x: u64 }}");
    let structure = Structure::new(&syn::parse_str(&item).expect("Rust")).expect("a structure");
    let text = |file: &str| match modules.iter().find(|(name, _)| *name == file) {
        Some((_, text)) => Ok((*text).to_string()),
        None if file == "both.cuh" => Ok("struct Both { u64 x; };\nstruct Few { u64 x; };".to_string()),
        None => Err(String::new()),
    };
    let names: Vec<String> = modules.iter().map(|(name, _)| (*name).to_string()).collect();
    let found = kernels(&structure, &names, text).map_err(|error| error.to_string())?.to_string();
    let list = found.split("Some").nth(1).unwrap_or_default();
    Ok(list.trim_end_matches([' ', '}']).replace(' ', ""))
}

#[test]
fn kernels_with_the_parameters_are_found() {
    let one = "#include \"both.cuh\"\n// KERNEL(no, Both, f)\nKERNEL(one_f32, Both, f<f32>) KERNEL(one_few, Few, g)";
    let macros =
        "#include \"both.cuh\"\n#define ALL(kind, T) \\\n    COOPERATIVE(two_##kind##_of_##T, Both, f<T>) \\\n    \
                  KERNEL(last_##T, Both, g)\nALL(direct, f32)\nKERNEL(plain, Both, h)";
    let modules =
        [("one.cu", one), ("two.cu", macros), ("three.cu", "struct Both { u64 x; };\nKERNEL(three, Both, f)")];
    let header = r#"(&[("one","one_f32"),("two","two_*_of_*"),("two","last_*"),("two","plain")])"#;
    assert_eq!(kernels_of("Both in \"both.cuh\"", &modules), Ok(header.to_string()));
    assert_eq!(kernels_of("Few in \"both.cuh\"", &modules), Ok(r#"(&[("one","one_few")])"#.to_string()));
    assert_eq!(kernels_of("Both in \"three.cu\"", &modules), Ok(r#"(&[("three","three")])"#.to_string()));
    let text = "`BothParams`: the struct `None` in both.cuh is not the parameters of a kernel";
    assert_eq!(kernels_of("None in \"both.cuh\"", &modules), Err(text.to_string()));
}

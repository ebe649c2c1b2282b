//! Reads the declarations of operators and of their kernels in lines of Rust code, for the build script.

use std::collections::{BTreeMap, BTreeSet};

/// The operators of each family, which is a file.
pub type Table = BTreeMap<String, BTreeSet<String>>;

/// The families that a feature of the crate adds, in the order of the features. All others are in every build.
pub const OPTIONAL: [(&str, &str); 14] = [
    ("detection", "detection"),
    ("col2im", "image"),
    ("deform_conv", "image"),
    ("grid_sample", "image"),
    ("unpool", "image"),
    ("ml", "ml"),
    ("svm", "ml"),
    ("trees", "ml"),
    ("random", "random"),
    ("recurrent", "recurrent"),
    ("sequence", "sequence"),
    ("signal", "signal"),
    ("strings", "text"),
    ("tf_idf", "text"),
];

/// A declared operator, or an operator with a declared kernel.
#[derive(Debug, PartialEq)]
pub struct Declaration {
    pub name: String,
    /// The file and the line, as `src/gpu/unary.rs:12`.
    pub place: String,
}

/// Returns the operators that a file implements, in lines such as `impl Operator for Name {` or `operator! { Name, …`.
/// `<Op>` follows an operator with nested graphs, which is generic. Indented lines belong to macros and tests.
///
/// # Errors
/// A line begins a declaration and has no name.
pub fn operators(file: &str, code: &str) -> Result<Vec<Declaration>, String> {
    declarations(file, code, |line| match line.strip_prefix("impl") {
        Some(implemented) => Some(implemented.split_once(" Operator for ")?.1),
        None => line.strip_prefix("operator! {"),
    })
}

/// Returns the operators with a kernel for images in blocks of channels in a file, in lines such as
/// `impl HasBlocksKernel for Name {`.
///
/// # Errors
/// A line begins a declaration and has no name.
pub fn blocks_kernels(file: &str, code: &str) -> Result<Vec<Declaration>, String> {
    declarations(file, code, |line| line.strip_prefix("impl HasBlocksKernel for "))
}

/// Returns the operators whose GPU kernels a file declares, in lines such as `gpu_kernel!(Name: …` or `on_gpu! { Name }`.
/// The macros themselves have a parameter `$Op` in the place of the name.
///
/// # Errors
/// A line begins a declaration and has no name.
pub fn gpu_kernels(file: &str, code: &str) -> Result<Vec<Declaration>, String> {
    declarations(file, code, |line| {
        let line = line.trim_start();
        line.strip_prefix("gpu_kernel!(").or_else(|| line.strip_prefix("on_gpu! {"))
    })
}

/// Returns the declarations in the lines for which `named` returns the text from the name on.
fn declarations(file: &str, code: &str, named: impl Fn(&str) -> Option<&str>) -> Result<Vec<Declaration>, String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(code.lines()) {
        let Some(text) = named(line).map(str::trim_start) else { continue };
        let (name, after) = text.split_at(text.find(|char: char| !char.is_alphanumeric()).unwrap_or(text.len()));
        let place = format!("{file}:{number}");
        match name {
            "" if after.starts_with('$') => {}
            "" => return Err(format!("{place}: write the name of the operator in the line `{}`", line.trim())),
            _ if after.starts_with('<') => found.push(Declaration { name: format!("{name}<Op>"), place }),
            _ => found.push(Declaration { name: name.to_owned(), place }),
        }
    }
    Ok(found)
}

/// Returns the operators with kernels, by family.
///
/// # Errors
/// A kernel's operator is not in the table.
pub fn with_kernels(operators: &Table, kernels: &[Declaration]) -> Result<Table, String> {
    let mut found = Table::new();
    for Declaration { name, place } in kernels {
        let family = operators.iter().find(|(_, names)| names.contains(name));
        let (family, _) =
            family.ok_or_else(|| format!("{place}: no file of src/ops/ implements the operator {name}"))?;
        found.entry(family.clone()).or_default().insert(name.clone());
    }
    Ok(found)
}

/// Takes the families out of a table whose feature is off. Returns their operators, each with its feature.
pub fn left_out(operators: &mut Table, is_on: impl Fn(&str) -> bool) -> BTreeMap<String, &'static str> {
    let off = OPTIONAL.into_iter().filter(|(_, feature)| !is_on(feature));
    let names = off.flat_map(|(family, feature)| {
        let names = operators.remove(family).unwrap_or_default();
        names.into_iter().map(move |name| (name, feature))
    });
    names.collect()
}

/// Returns the modules without those of families whose feature is off.
pub fn compiled(modules: BTreeSet<String>, is_on: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let is_off = |module: &String| OPTIONAL.iter().any(|(family, feature)| family == module && !is_on(feature));
    modules.into_iter().filter(|module| !is_off(module)).collect()
}

/// Returns a macro that declares modules beside the file that calls it.
pub fn modules_macro(name: &str, modules: BTreeSet<String>) -> String {
    let lines: String = modules.iter().map(|module| format!("        mod {module};\n")).collect();
    format!("macro_rules! {name} {{\n    () => {{\n{lines}    }};\n}}\n")
}

/// Returns a constant with operators and their features.
pub fn features_constant(name: &str, operators: &BTreeMap<String, &str>) -> String {
    format!("const {name}: &[(&str, &str)] = &{:?};\n", operators.iter().collect::<Vec<_>>())
}

/// Returns a macro that calls the macro `$called` with a table. The generated macros need the dollar sign `$d`.
pub fn table_macro(name: &str, operators: &Table) -> String {
    let lines = operators.iter().map(|(family, names)| {
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        format!("            {family}: {};\n", names.join(" "))
    });
    let lines: String = lines.collect();
    format!(
        "macro_rules! {name} {{\n    ($called:ident $d:tt) => {{\n        $called! {{\n            $d\n{lines}        }}\n    }};\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(found: Result<Vec<Declaration>, String>) -> Vec<(String, String)> {
        found.expect("every line has a name").into_iter().map(|each| (each.name, each.place)).collect()
    }

    fn pair(name: &str, place: &str) -> (String, String) {
        (name.to_owned(), place.to_owned())
    }

    #[test]
    fn operators_are_found() {
        let code = "impl Operator for Relu {\n}\n\nimpl<T: Block> Operator for Loop<T> {\n\noperator! { And, 2 }\n\
                    impl Display for Relu {\nimpl Operator for $Op {\n    impl Operator for Probe {\n// operator! { Or }";
        assert_eq!(
            named(operators("a.rs", code)),
            [pair("Relu", "a.rs:1"), pair("Loop<Op>", "a.rs:4"), pair("And", "a.rs:6")]
        );
    }

    #[test]
    fn kernels_are_found() {
        let code =
            "gpu_kernel!(Unary: \"unary\");\n    on_gpu! { Lstm }\n        gpu_kernel!($Op: $module by |x| y);\nx";
        assert_eq!(named(gpu_kernels("b.rs", code)), [pair("Unary", "b.rs:1"), pair("Lstm", "b.rs:2")]);
        let code = "trait HasBlocksKernel {\n\nimpl HasBlocksKernel for Conv {\nimpl HasKernel for Gemm {";
        assert_eq!(named(blocks_kernels("c.rs", code)), [pair("Conv", "c.rs:3")]);
    }

    #[test]
    fn a_declaration_without_a_name_is_an_error() {
        let message = "c.rs:2: write the name of the operator in the line `gpu_kernel!(`";
        assert_eq!(gpu_kernels("c.rs", "\ngpu_kernel!(\n    Unary: \"unary\");"), Err(message.to_owned()));
        let message = "c.rs:1: write the name of the operator in the line `operator! {`";
        assert_eq!(operators("c.rs", "operator! {\n    And, 2\n}"), Err(message.to_owned()));
    }

    fn table(families: &[(&str, &[&str])]) -> Table {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect();
        families.iter().map(|(family, each)| ((*family).to_owned(), names(each))).collect()
    }

    #[test]
    fn families_without_their_feature_are_left_out() {
        let mut operators = table(&[("ml", &["Scaler", "Imputer"]), ("svm", &["Svm"]), ("unary", &["Unary"])]);
        assert!(left_out(&mut operators.clone(), |_| true).is_empty());
        let found = left_out(&mut operators, |feature| feature != "ml");
        assert_eq!(operators, table(&[("unary", &["Unary"])]));
        let expected =
            "const OUT: &[(&str, &str)] = &[(\"Imputer\", \"ml\"), (\"Scaler\", \"ml\"), (\"Svm\", \"ml\")];\n";
        assert_eq!(features_constant("OUT", &found), expected);
    }

    #[test]
    fn modules_without_their_feature_are_left_out() {
        let modules = || ["launch", "pool", "unpool"].map(str::to_owned).into();
        assert_eq!(compiled(modules(), |_| true).len(), 3);
        let found = compiled(modules(), |feature| feature != "image");
        let expected = "macro_rules! m {\n    () => {\n        mod launch;\n        mod pool;\n    };\n}\n";
        assert_eq!(modules_macro("m", found), expected);
    }

    #[test]
    fn operators_with_kernels_keep_their_families() {
        let all = table(&[("logic", &["And", "Or"]), ("unary", &["Unary"])]);
        let declared = |name: &str| [Declaration { name: name.to_owned(), place: "d.rs:7".to_owned() }];
        assert_eq!(with_kernels(&all, &declared("Or")), Ok(table(&[("logic", &["Or"])])));
        let message = "d.rs:7: no file of src/ops/ implements the operator Xor";
        assert_eq!(with_kernels(&all, &declared("Xor")), Err(message.to_owned()));
        let expected =
            "macro_rules! with_ops {\n    ($called:ident $d:tt) => {\n        $called! {\n            $d\n            \
                        logic: And Or;\n            unary: Unary;\n        }\n    };\n}\n";
        assert_eq!(table_macro("with_ops", &all), expected);
    }
}

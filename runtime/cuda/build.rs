//! Links the extension without symbols, which would take several megabytes.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-link-arg-cdylib=-Wl,--strip-all");
}

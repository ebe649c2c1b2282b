//! The functions of the stand-in that NVIDIA's driver lacks.

use std::ffi::{c_char, c_int, CStr, CString};

#[link(name = "cuda")]
extern "C" {
    fn standin_configure(text: *const c_char) -> c_int;
    fn standin_calls() -> *const c_char;
}

/// Resets the counts of calls.
pub fn reset() {
    configure("upload=staged");
}

/// Changes the configuration, and resets the counts of calls.
pub fn configure(text: &str) {
    let text = CString::new(text).expect("it has no zero");
    // SAFETY: the text ends with a zero.
    assert_eq!(unsafe { standin_configure(text.as_ptr()) }, 0);
}

/// How often a function was called since.
pub fn calls(name: &str) -> usize {
    // SAFETY: it returns a text that ends with a zero and stays until the next call of this thread.
    let text = unsafe { CStr::from_ptr(standin_calls()) }.to_string_lossy();
    let counts = text.lines().filter_map(|line| line.split_once(' '));
    let of_name = counts.filter(|(found, _)| *found == name);
    of_name.map(|(_, count)| count.trim().parse::<usize>().expect("a number")).sum()
}

/// The functions that copy to the device, on the device and from the device.
pub fn copies() -> [usize; 3] {
    ["cuMemcpyHtoDAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemcpyDtoHAsync_v2"].map(calls)
}

/// `CUDA_ERROR_NOT_SUPPORTED`.
const NOT_SUPPORTED: c_int = 801;

/// Functions of the driver and of cuBLAS that Candle links and nothing here calls: the stand-in lacks them.
macro_rules! absent {
    ($($name:ident)*) => {$(
        #[allow(non_snake_case)]
        #[no_mangle]
        extern "C" fn $name() -> c_int {
            NOT_SUPPORTED
        }
    )*};
}

absent! { cublasDgemmStridedBatched cuCtxDestroy_v2 cuMemcpyPeerAsync cuModuleLoad cuStreamIsCapturing }

//! Replaces Candle's kernels: it has the names that `candle-core` uses, and no kernels.

/// A module without kernels.
pub struct Module(usize);

impl Module {
    pub fn index(&self) -> usize {
        self.0
    }

    /// An empty text, which no driver loads.
    pub fn ptx(&self) -> &'static str {
        ""
    }
}

/// One element for each module.
pub const ALL_IDS: [(); 11] = [(); 11];

pub const AFFINE: Module = Module(0);
pub const BINARY: Module = Module(1);
pub const CAST: Module = Module(2);
pub const CONV: Module = Module(3);
pub const FILL: Module = Module(4);
pub const INDEXING: Module = Module(5);
pub const QUANTIZED: Module = Module(6);
pub const REDUCE: Module = Module(7);
pub const SORT: Module = Module(8);
pub const TERNARY: Module = Module(9);
pub const UNARY: Module = Module(10);

/// Launchers of kernels for quantized matrices. A call ends the process.
#[allow(non_snake_case)]
pub mod ffi {
    use std::ffi::c_void;

    type In = *const c_void;
    type Out = *mut c_void;

    macro_rules! absent {
        ($arguments:tt: $($name:ident)*) => {$( absent!(@ $name $arguments); )*};
        (@ $name:ident ($($kind:ty),*)) => {
            /// # Safety
            /// Nobody calls it.
            pub unsafe extern "C" fn $name($(_: $kind),*) {
                panic!(concat!(stringify!($name), " is left out of this build"));
            }
        };
    }

    absent! { (In, In, Out, i32, i32, i32, i32, i32, Out):
        launch_mmvq_gguf_q4_0_bf16_plain launch_mmvq_gguf_q4_0_f16_plain launch_mmvq_gguf_q4_0_f32_plain
        launch_mmvq_gguf_q4_1_bf16_plain launch_mmvq_gguf_q4_1_f16_plain launch_mmvq_gguf_q4_1_f32_plain
        launch_mmvq_gguf_q5_0_bf16_plain launch_mmvq_gguf_q5_0_f16_plain launch_mmvq_gguf_q5_0_f32_plain
        launch_mmvq_gguf_q5_1_bf16_plain launch_mmvq_gguf_q5_1_f16_plain launch_mmvq_gguf_q5_1_f32_plain
        launch_mmvq_gguf_q8_0_bf16_plain launch_mmvq_gguf_q8_0_f16_plain launch_mmvq_gguf_q8_0_f32_plain
        launch_mmvq_gguf_q2_k_bf16_plain launch_mmvq_gguf_q2_k_f16_plain launch_mmvq_gguf_q2_k_f32_plain
        launch_mmvq_gguf_q3_k_bf16_plain launch_mmvq_gguf_q3_k_f16_plain launch_mmvq_gguf_q3_k_f32_plain
        launch_mmvq_gguf_q4_k_bf16_plain launch_mmvq_gguf_q4_k_f16_plain launch_mmvq_gguf_q4_k_f32_plain
        launch_mmvq_gguf_q5_k_bf16_plain launch_mmvq_gguf_q5_k_f16_plain launch_mmvq_gguf_q5_k_f32_plain
        launch_mmvq_gguf_q6_k_bf16_plain launch_mmvq_gguf_q6_k_f16_plain launch_mmvq_gguf_q6_k_f32_plain
    }
    absent! { (In, Out, i32, i32, i32, Out):
        launch_mmvq_gguf_quantize_q8_1_bf16 launch_mmvq_gguf_quantize_q8_1_f16 launch_mmvq_gguf_quantize_q8_1_f32
    }
    absent! { (In, *const i32, Out, i32, i64, i64, i64, i64, i64, i64, i64, i64, Out):
        launch_mmq_quantize_q8_1_D4 launch_mmq_quantize_q8_1_DS4 launch_mmq_quantize_q8_1_D2S6
    }
    absent! { (Out, In, In, Out, i64, i64, i64, i64, i64, i32, i32, i64, i32, Out):
        launch_mmq_gguf_q4_0 launch_mmq_gguf_q4_1 launch_mmq_gguf_q5_0 launch_mmq_gguf_q5_1 launch_mmq_gguf_q8_0
        launch_mmq_gguf_q2_k launch_mmq_gguf_q3_k launch_mmq_gguf_q4_k launch_mmq_gguf_q5_k launch_mmq_gguf_q6_k
    }
}

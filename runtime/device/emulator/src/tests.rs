//! Tests of the emulator.

use super::*;
use candle_plan_device::BLOCK;

/// Copies 300 bytes with stride `step` to a buffer that is large enough for stride 1.
fn copied(step: u32) -> Result<()> {
    const COUNT: u32 = 300;
    let bytes: Vec<u8> = (0..COUNT).map(|i| (i % 251) as u8).collect();
    let gpu = open()?;
    let (x, y) = (gpu.uploaded(&bytes)?, gpu.allocate(bytes.len())?);
    // `CopyOf` of `copy.cu`: count, rank and dimensions, strides of both.
    let mut rest = [0u32; 26];
    (rest[0], rest[1], rest[2], rest[10], rest[18]) = (COUNT, 1, COUNT, 1, step);
    let params = [bytemuck::bytes_of(&[x.address(), y.address()]), bytemuck::bytes_of(&rest)].concat();
    let symbol = Symbol { module: "copy", name: "copy", kind: "u8" };
    // SAFETY: both buffers have a byte for each element.
    unsafe { Emulator.launch(symbol, Grid { blocks: [2, 1, 1], threads: BLOCK }, &params)? };
    let mut found = vec![0; bytes.len()];
    y.download(0, &mut found)?;
    assert_eq!(found, bytes);
    Ok(())
}

#[test]
fn threads_that_write_one_place_are_found() {
    copied(1).expect("each has its own place");
    let error = copied(0).expect_err("all have one place").to_string();
    assert_eq!(error, "the output of copy/copy_u8 depends on the order of its threads: byte 0 of its memory");
}

#[test]
fn there_is_one_emulator() {
    register();
    let opened = |ordinal| candle_plan_device::open("emulator", ordinal).expect("it is registered");
    assert_eq!(opened(0).map(|gpu| gpu.name().to_string()), Ok("emulator".to_string()));
    let error = opened(7).expect_err("there is one").to_string();
    assert_eq!(error, "there is no GPU 7: the emulator is one, number 0");
}

#[test]
fn a_safe_copy_stays_on_its_gpu() {
    let (emulator, other) = (open().expect("enough memory"), Gpu::dry_run().expect("it needs nothing"));
    let (here, there) = (emulator.uploaded(&[7; 4]).expect("few"), other.uploaded(&[7; 4]).expect("few"));
    let mut bytes = [0; 4];
    let parts = vec![there.part(0, &mut bytes).expect("it has four")];
    let refused = "the memory is on the device dry run, not on emulator";
    assert_eq!(emulator.download(parts).expect_err("another GPU").to_string(), refused);
    assert_eq!(there.copied(&emulator, 0, 4).expect_err("another GPU").to_string(), refused);
    let copy = here.copied(&open().expect("enough memory"), 1, 2).expect("the same GPU");
    let mut bytes = [0; 2];
    copy.download(0, &mut bytes).expect("it has two");
    assert_eq!(bytes, [7; 2]);
}

#[test]
fn memory_is_not_given_away_and_there_is_no_other_stream() {
    let gpu = open().expect("enough memory");
    // SAFETY: the emulator uses no stream.
    let (memory, moved) =
        unsafe { (gpu.uploaded(&[7; 4]).expect("few").into_memory(1), gpu.on_stream(1, Box::new(()))) };
    let kept = memory.expect("it waits for nothing").expect_err("no driver frees it");
    let mut bytes = [0; 4];
    kept.download(0, &mut bytes).expect("it has four");
    assert_eq!(bytes, [7; 4]);
    assert_eq!(moved.expect_err("no streams").to_string(), "the device emulator has no streams");
}

use bytemuck::cast_slice;

use super::*;
use crate::array::backing::Part;
use crate::mapped::mapping_of_deleted;

#[test]
fn a_shared_storage_is_not_overwritten() {
    let mut x = Array::new(vec![1f32, 2.0, 3.0, 4.0], &[2, 2]).expect("four elements");
    let mut row = x.narrow_outer(0, 1, 1).expect("a row");
    assert!(row.shares_storage_with(&x));
    let double = |x: &mut [f32]| {
        x.iter_mut().for_each(|x| *x *= 2.0);
        Ok(())
    };
    row.update(double).expect("float32");
    assert_eq!((x.read::<f32>().unwrap(), row.read::<f32>().unwrap()), (&[1f32, 2.0, 3.0, 4.0][..], &[6f32, 8.0][..]));
    let before = x.read::<f32>().unwrap().as_ptr();
    x.update(double).expect("float32");
    assert_eq!(x.read::<f32>().unwrap(), [2.0, 4.0, 6.0, 8.0]);
    assert_eq!(x.read::<f32>().unwrap().as_ptr(), before, "where it stands");
    assert!(x.update::<i32>(|_| Ok(())).is_err());
}

/// Four floats from byte `start` of a deleted file.
fn in_file(start: usize) -> Result<Array> {
    let path = std::env::temp_dir().join(format!("candle-plan-array-{}-{start}", std::process::id()));
    std::fs::write(&path, cast_slice::<f32, u8>(&[0.0, 1.0, 2.0, 3.0, 4.0])).expect("it is written");
    let file = std::fs::File::open(&path).expect("it is there");
    std::fs::remove_file(path).expect("it is there");
    let mapping = Arc::new(mapping_of_deleted(&file));
    Array::lying_in(Backing::File(Part::new(&mapping, start..start + 16).expect("it is inside")), &[4], DType::Float32)
}

#[test]
fn a_file_is_not_overwritten() {
    let x = in_file(4).expect("four elements");
    assert!(!x.is_alone() && x.storage().1 == 16);
    let mut rows = x.narrow_outer(0, 1, 2).expect("two rows");
    let reverse = |x: &mut [f32]| {
        x.reverse();
        Ok(())
    };
    rows.update(reverse).expect("float32");
    assert_eq!(rows.read::<f32>().unwrap(), [3.0, 2.0]);
    assert_eq!(words::read::<u32>(&x).unwrap(), [1f32, 2.0, 3.0, 4.0].map(f32::to_bits));
    assert!(x.bits::<i32>().is_err() && words::read::<u16>(&x).is_err());
    assert_eq!(x.clone().into_candle().expect("a copy").to_vec1::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(x.into_elements::<f32>().unwrap(), [1.0, 2.0, 3.0, 4.0]);
    assert!(in_file(2).is_err(), "no element begins there");
}

#[test]
fn views_stay_inside_the_array() {
    let x = Array::new((0..12i64).collect(), &[1, 4, 3]).expect("twelve elements");
    let rows = x.narrow_outer(1, 2, 2).and_then(|rows| rows.reshape(&[6])).expect("rows");
    assert_eq!(rows.read::<i64>().unwrap(), [6, 7, 8, 9, 10, 11]);
    assert_eq!(rows.narrow_outer(0, 4, 2).unwrap().into_elements::<i64>().unwrap(), [10, 11]);
    for (axis, start, length) in [(1, 3, 2), (1, usize::MAX, 2), (2, 0, 1), (3, 0, 1), (0, 1, 1)] {
        assert!(x.narrow_outer(axis, start, length).is_err(), "{axis} {start} {length}");
    }
    assert!(x.reshape(&[5]).is_err() && x.reinterpret(DType::Uint64).is_ok() && x.reinterpret(DType::Bool).is_err());
}

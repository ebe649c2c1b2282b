//! The functions of the driver, `libcuda.so.1`, that this crate calls. Types and numbers are from `cuda.h` of CUDA
//! 13.0.

#![allow(non_snake_case)]

use std::ffi::{c_char, c_int, c_uint, c_void};

use crate::failure::Failure;
use crate::library::{functions, Library};

pub(super) static DRIVER: Library = Library::new("libcuda.so.1", FUNCTIONS);

/// An opaque pointer of the driver.
macro_rules! handles {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(transparent)]
        pub(super) struct $name(pub usize);

        impl $name {
            pub const NULL: $name = $name(0);
        }
    )*};
}

handles! { ContextHandle StreamHandle EventHandle PoolHandle ModuleHandle FunctionHandle }

/// `CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR` and `_MINOR`.
pub(super) const CAPABILITY: [c_int; 2] = [75, 76];
/// `CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED`.
pub(super) const MEMORY_POOLS_SUPPORTED: c_int = 115;
/// `CU_STREAM_NON_BLOCKING`: the stream does not wait for the default stream.
pub(super) const NON_BLOCKING: c_uint = 1;
/// `CU_EVENT_DISABLE_TIMING`.
pub(super) const WITHOUT_TIME: c_uint = 2;
/// `CU_MEMPOOL_ATTR_RELEASE_THRESHOLD`, a 64-bit number.
pub(super) const RELEASE_THRESHOLD: c_int = 4;
/// `CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL`, a `c_int`.
pub(super) const DEVICE_ORDINAL: c_int = 9;
/// `CUDA_ERROR_INVALID_VALUE`.
pub(super) const INVALID_VALUE: u32 = 1;
/// `CUDA_ERROR_OUT_OF_MEMORY`.
pub(super) const OUT_OF_MEMORY: u32 = 2;
/// `CUDA_ERROR_NOT_INITIALIZED`, which `cuInit` returns in a process that was forked from one that uses a GPU.
pub(super) const NOT_INITIALIZED: u32 = 3;
/// `CUDA_ERROR_NO_DEVICE`.
pub(super) const NO_DEVICE: u32 = 100;

/// `CUmemPoolProps`.
#[repr(C)]
pub(super) struct PoolProperties {
    allocation: c_int,
    handles: c_int,
    location: c_int,
    device: c_int,
    security: *mut c_void,
    most: usize,
    usage: u16,
    reserved: [u8; 54],
}

impl PoolProperties {
    /// A pool of a device's memory that is not shared with other processes.
    pub fn of(device: c_int) -> PoolProperties {
        let (allocation, handles, location) = (1, 0, 1); // pinned, none, a device
        let security = std::ptr::null_mut();
        PoolProperties { allocation, handles, location, device, security, most: 0, usage: 0, reserved: [0; 54] }
    }
}

const _: () = assert!(size_of::<PoolProperties>() == 88);

functions! { DRIVER, Failure::Driver;
    fn cuInit(flags: c_uint);
    fn cuDriverGetVersion(version: *mut c_int);
    fn cuGetErrorName(status: u32, name: *mut *const c_char);
    fn cuGetErrorString(status: u32, text: *mut *const c_char);
    fn cuDeviceGetCount(count: *mut c_int);
    fn cuDeviceGet(device: *mut c_int, ordinal: c_int);
    fn cuDeviceGetName(name: *mut c_char, length: c_int, device: c_int);
    fn cuDeviceGetAttribute(value: *mut c_int, attribute: c_int, device: c_int);
    fn cuDevicePrimaryCtxRetain(context: *mut ContextHandle, device: c_int);
    fn cuDevicePrimaryCtxRelease_v2(device: c_int);
    fn cuCtxGetCurrent(context: *mut ContextHandle);
    fn cuCtxSetCurrent(context: ContextHandle);
    fn cuCtxSynchronize();
    fn cuStreamCreate(stream: *mut StreamHandle, flags: c_uint);
    fn cuStreamDestroy_v2(stream: StreamHandle);
    fn cuStreamSynchronize(stream: StreamHandle);
    fn cuEventCreate(event: *mut EventHandle, flags: c_uint);
    fn cuEventDestroy_v2(event: EventHandle);
    fn cuEventRecord(event: EventHandle, stream: StreamHandle);
    fn cuEventSynchronize(event: EventHandle);
    fn cuStreamWaitEvent(stream: StreamHandle, event: EventHandle, flags: c_uint);
    fn cuPointerGetAttribute(value: *mut c_void, attribute: c_int, address: u64);
    fn cuMemPoolCreate(pool: *mut PoolHandle, properties: *const PoolProperties);
    fn cuMemPoolDestroy(pool: PoolHandle);
    fn cuMemPoolSetAttribute(pool: PoolHandle, attribute: c_int, value: *mut c_void);
    fn cuMemPoolTrimTo(pool: PoolHandle, keep: usize);
    fn cuMemAllocFromPoolAsync(address: *mut u64, bytes: usize, pool: PoolHandle, stream: StreamHandle);
    fn cuMemFreeAsync(address: u64, stream: StreamHandle);
    fn cuMemAlloc_v2(address: *mut u64, bytes: usize);
    fn cuMemFree_v2(address: u64);
    fn cuMemHostAlloc(memory: *mut *mut c_void, bytes: usize, flags: c_uint);
    fn cuMemFreeHost(memory: *mut c_void);
    fn cuMemcpyHtoDAsync_v2(to: u64, from: *const c_void, bytes: usize, stream: StreamHandle);
    fn cuMemcpyDtoHAsync_v2(to: *mut c_void, from: u64, bytes: usize, stream: StreamHandle);
    fn cuMemcpyDtoDAsync_v2(to: u64, from: u64, bytes: usize, stream: StreamHandle);
    fn cuModuleLoadData(module: *mut ModuleHandle, image: *const c_void);
    fn cuModuleUnload(module: ModuleHandle);
    fn cuModuleGetFunction(function: *mut FunctionHandle, module: ModuleHandle, name: *const c_char);
    fn cuLaunchKernel(
        function: FunctionHandle,
        x: c_uint,
        y: c_uint,
        z: c_uint,
        threads_x: c_uint,
        threads_y: c_uint,
        threads_z: c_uint,
        shared: c_uint,
        stream: StreamHandle,
        parameters: *mut *mut c_void,
        extra: *mut *mut c_void,
    );
}

//! A GPU on paper.

use crate::backend::{Backend, Download, Error, Grid, Memory, Result, Symbol};
use crate::gemm::Gemm;

/// It takes whatever is given, keeps nothing, and runs nothing.
#[derive(Debug)]
pub(crate) struct Paper;

const NOTHING_RUNS: &str = "nothing runs on a device that is there on paper alone";

impl Backend for Paper {
    fn name(&self) -> &str {
        "paper"
    }

    fn allocate(&self, _: usize) -> Result<Memory> {
        Ok(Memory { address: 0, _owner: Box::new(()) })
    }

    unsafe fn upload(&self, _: &[u8], _: u64) -> Result<()> {
        Ok(())
    }

    unsafe fn download(&self, _: &mut [Download]) -> Result<()> {
        Err(Error::Failed(NOTHING_RUNS.to_string()))
    }

    unsafe fn copy(&self, _: u64, _: u64, _: usize) -> Result<()> {
        Ok(())
    }

    unsafe fn launch(&self, _: Symbol, _: Grid, _: &[u8]) -> Result<()> {
        Err(Error::Failed(NOTHING_RUNS.to_string()))
    }

    unsafe fn gemm(&self, _: &Gemm) -> Result<()> {
        Err(Error::Failed(NOTHING_RUNS.to_string()))
    }

    fn finish(&self) -> Result<()> {
        Ok(())
    }

    fn stream(&self) -> Option<u64> {
        None
    }

    unsafe fn wait_for(&self, _: u64) -> Result<()> {
        Ok(())
    }

    fn check_address(&self, _: u64) -> Result<()> {
        Ok(())
    }
}

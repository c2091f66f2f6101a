//! Proof that the bytes are right: a sample of blocks, compared with plain pread of the same places.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use crate::page::PageError;

/// Blocks that one scan samples, at most about.
const SAMPLES: u64 = 256;

/// What was read of one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sample {
    /// Where in the file, in bytes.
    pub offset: u64,
    /// How many bytes.
    pub len: u32,
    /// Their checksum.
    pub checksum: u64,
}

/// Takes every so manieth block of a scan, by its number, so that the same scan has the same samples.
#[derive(Debug)]
pub struct Sampler {
    stride: u64,
    samples: Vec<Sample>,
}

impl Sampler {
    /// For a scan of `total` blocks, over all threads.
    pub fn new(total: u64) -> Sampler {
        Sampler { stride: total.div_ceil(SAMPLES).max(1), samples: Vec::with_capacity(SAMPLES as usize + 1) }
    }

    /// Block number `index` of the scan was read from `offset`.
    #[inline]
    pub fn see(&mut self, index: u64, offset: u64, bytes: &[u8]) {
        if index.is_multiple_of(self.stride) {
            self.samples.push(Sample { offset, len: bytes.len() as u32, checksum: checksum(bytes) });
        }
    }

    /// What was taken.
    pub fn into_samples(self) -> Vec<Sample> {
        self.samples
    }
}

/// A checksum of which every byte and every place matters (FNV-1a over words of eight bytes).
pub fn checksum(bytes: &[u8]) -> u64 {
    let mut words = bytes.chunks_exact(8);
    let mut hash = 0xCBF2_9CE4_8422_2325_u64 ^ bytes.len() as u64;
    let mut add = |word: u64| {
        hash = (hash ^ word).wrapping_mul(0x0000_0100_0000_01B3);
        hash ^= hash >> 29;
    };
    for word in &mut words {
        let mut eight = [0; 8];
        eight.copy_from_slice(word);
        add(u64::from_le_bytes(eight));
    }
    words.remainder().iter().for_each(|&byte| add(u64::from(byte)));
    hash
}

/// One checksum of all samples, whatever the order in which they were taken.
pub fn combine(samples: &[Sample]) -> u64 {
    let mut sorted: Vec<[u64; 2]> = samples.iter().map(|s| [s.offset, s.checksum]).collect();
    sorted.sort_unstable();
    checksum(&sorted.iter().flatten().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
}

/// A block whose bytes were not those that pread gives.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{wrong} of {checked} sampled blocks differ from what pread gives, the first at offset {offset}")]
pub struct Mismatch {
    /// Blocks that differ.
    pub wrong: u64,
    /// Blocks compared.
    pub checked: u64,
    /// Offset of the first that differs.
    pub offset: u64,
}

/// Reads the sampled places by plain buffered pread and compares. Not part of the measured phase: it fills the page cache.
///
/// # Errors
/// [`PageError`]: the file cannot be opened or read.
pub fn compare(path: &Path, samples: &[Sample]) -> Result<Result<u64, Mismatch>, PageError> {
    let file = File::open(path).map_err(|source| PageError::io("open", path, source))?;
    let mut wrong = Vec::new();
    let mut buffer = Vec::new();
    for sample in samples {
        buffer.resize(sample.len as usize, 0);
        let read = match file.read_exact_at(&mut buffer, sample.offset) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
            Err(error) => return Err(PageError::io("read", path, error)),
        };
        if !read || checksum(&buffer) != sample.checksum {
            wrong.push(sample.offset);
        }
    }
    let checked = samples.len() as u64;
    Ok(match wrong.iter().min() {
        None => Ok(checked),
        Some(&offset) => Err(Mismatch { wrong: wrong.len() as u64, checked, offset }),
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::io::Write;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_changed_byte_changes_the_checksum(mut bytes in prop::collection::vec(any::<u8>(), 1..300), at: prop::sample::Index, flip in 1_u8..) {
            let before = checksum(&bytes);
            let index = at.index(bytes.len());
            bytes[index] ^= flip;
            prop_assert_ne!(checksum(&bytes), before);
        }

        #[test]
        fn the_order_of_samples_does_not_matter(offsets in prop::collection::vec(any::<u64>(), 0..40)) {
            let samples: Vec<Sample> = offsets.iter().map(|&o| Sample { offset: o, len: 1, checksum: o ^ 7 }).collect();
            let reversed: Vec<Sample> = samples.iter().rev().copied().collect();
            prop_assert_eq!(combine(&samples), combine(&reversed));
        }

        #[test]
        fn about_256_blocks_are_sampled(total in 1_u64..100_000) {
            let mut sampler = Sampler::new(total);
            (0..total).for_each(|index| sampler.see(index, index, &[]));
            let count = sampler.into_samples().len() as u64;
            prop_assert!(count <= SAMPLES && count >= total.min(SAMPLES / 2), "{count}");
        }
    }

    #[test]
    fn a_wrong_block_is_found_and_places_behind_the_end_are_wrong() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(&[7; 10_000]).unwrap();
        let right = Sample { offset: 4096, len: 4096, checksum: checksum(&[7; 4096]) };
        assert_eq!(compare(file.path(), &[right]).unwrap(), Ok(1));
        let wrong = Sample { checksum: 1, ..right };
        let behind = Sample { offset: 8192, ..right };
        let mismatch = compare(file.path(), &[right, behind, wrong]).unwrap().unwrap_err();
        assert_eq!(mismatch, Mismatch { wrong: 2, checked: 3, offset: 4096 });
        assert!(compare(Path::new("/nonexistent"), &[right]).is_err());
    }
}

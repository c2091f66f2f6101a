//! Files to read, and the bytes that they ought to give.

use std::io::Write;
use std::path::Path;

use ioscope::page::PageReader;
use tempfile::NamedTempFile;

/// A file of `len` bytes on the build's disk (never /tmp, which may be in memory), each byte a function of its place.
pub fn file_of(len: usize) -> (NamedTempFile, Vec<u8>) {
    let mut bytes = vec![0_u8; len];
    let mut state = 0x9E37_79B9_7F4A_7C15_u64 ^ len as u64;
    for chunk in bytes.chunks_mut(8) {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        chunk.copy_from_slice(&state.to_le_bytes()[..chunk.len()]);
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let mut file = NamedTempFile::new_in(folder).unwrap();
    file.write_all(&bytes).unwrap();
    file.as_file().sync_all().unwrap();
    (file, bytes)
}

/// A small seeded generator: SplitMix64.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (z ^ (z >> 31)) % bound.max(1)
    }
}

/// Page numbers in the orders that engines ask for them: a scan, a scan with gaps and look-backs, a scan between
/// random reads, and random reads alone. The last pages are always among them.
pub fn walk(pages: u64, random: &mut Random) -> Vec<u64> {
    let mut walk: Vec<u64> = (0..pages).collect();
    let mut page = 0;
    while page < pages {
        walk.push(page);
        match random.below(10) {
            0 => walk.push(page.saturating_sub(random.below(40))),
            1 => walk.push((page + random.below(300)).min(pages - 1)),
            2 => page += random.below(5),
            _ => {}
        }
        page += 1;
    }
    walk.extend((0..pages.min(200)).map(|_| random.below(pages)));
    walk.push(pages - 1);
    walk
}

/// Reads every page of `walk` and compares with `bytes`; the last page may be partial, and behind it is nothing.
pub fn compare(reader: &mut PageReader, page_size: usize, bytes: &[u8], walk: &[u64], what: &str) {
    let mut buffer = vec![0xEE_u8; page_size];
    for (step, &page) in walk.iter().enumerate() {
        let start = page as usize * page_size;
        let expected = &bytes[start.min(bytes.len())..(start + page_size).min(bytes.len())];
        buffer.fill(0xEE);
        let count = reader.read_at(start as u64, &mut buffer).unwrap_or_else(|e| panic!("{what}: page {page}: {e}"));
        assert_eq!(count, expected.len(), "{what}: step {step}, length of page {page}");
        assert!(buffer[..count] == *expected, "{what}: step {step}, bytes of page {page}");
        assert!(buffer[count..].iter().all(|&b| b == 0xEE), "{what}: bytes behind the end of the file were written");
    }
}

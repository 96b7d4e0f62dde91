//! Timing of flushes by the amount written before them, and the conclusions from it.
//!
//! Writes go past the page cache, or are written out of it before the flush, so that the flush
//! finds them in the cache of the device. The sizes take turns in an order that changes from round
//! to round, so that neither drift nor a busy processor is mistaken for a slope.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::durability::findings::{Class, Flushing, Layer};
use blockstone_base::flushes::{self, Flush, FlushSlope};
use blockstone_base::rng::{self, Rng};
use blockstone_base::units::{Bytes, format_ns};
use blockstone_measure::{Observer, scratch};
use blockstone_sys::buffer::Slot;
use blockstone_sys::file::{Access, BlockFile, FileError};

use super::medium::failed;
use crate::CheckError;

/// Bytes written before a flush.
const SIZES: [u64; 5] = [0, 64 << 10, 256 << 10, 1 << 20, 4 << 20];
/// Size of one write in bytes.
const BLOCK: usize = 1 << 20;
/// Size of the file in bytes; writes start over at its end.
const SPAN: u64 = 16 << 20;

/// A flush moves data if an additional mebibyte takes at least this fraction of the time to write
/// it: honest caches were seen at 0.5 and more, others at 0.07 and less.
const MOVES: f64 = 0.25;
/// A flush does not move data if a mebibyte takes at most this fraction.
const STAYS: f64 = 0.1;
/// A busy processor slows down writes more than flushes, which are fewer requests. So a flush also
/// moves data if after the most bytes it takes this many times as long as after none, and a
/// mebibyte takes longer than any device needs to write one: 15 GB/s.
const GROWS: f64 = 5.0;
const FASTEST_NS_PER_MIB: f64 = 70e3;
/// Quantile of the write times: on a machine that is not busy, the median is close to it.
const WRITE_QUANTILE: f64 = 0.25;
/// Fewest flushes of the device per requested flush.
const FLUSHES_MIN: f64 = 0.5;

/// One round: bytes written, time to write them, time of the flush.
#[derive(Clone, Copy, Debug)]
struct Sample {
    flush: Flush,
    write_ns: u64,
}

/// Measured samples.
#[derive(Clone, Debug, Default)]
pub struct Timed {
    samples: Vec<Sample>,
    /// Whether writes went past the page cache.
    direct: bool,
}

/// Times flushes of a scratch file in `dir` for at most `limit`, in at most `rounds`.
pub fn time(
    dir: &Path,
    id: u64,
    (limit, rounds): (Duration, u64),
    observer: &mut dyn Observer,
) -> Result<Timed, CheckError> {
    let until = Instant::now() + limit;
    let (file, direct) = nameless(dir, id)?;
    let mut writer = Writer { file, direct, at: 0, number: 0, block: Slot::new(BLOCK)? };
    let mut timed = Timed { samples: Vec::new(), direct };
    for _ in 0..SPAN / BLOCK as u64 {
        if Instant::now() > until {
            return Ok(timed);
        }
        writer.write(BLOCK)?;
    }
    writer.flush(true)?;
    for round in 0..rounds {
        let mut sizes = SIZES;
        let mut rng = Rng::new(id, round);
        for at in (1..sizes.len()).rev() {
            sizes.swap(at, rng.below(at as u64 + 1) as usize);
        }
        for size in sizes {
            if observer.interrupted().is_some() || Instant::now() > until {
                return Ok(timed);
            }
            timed.samples.push(writer.sample(size)?);
        }
    }
    Ok(timed)
}

/// Makes an unlinked scratch file, opened past the page cache if possible.
fn nameless(dir: &Path, id: u64) -> Result<(BlockFile, bool), CheckError> {
    let path = dir.join(scratch::name(id, "flush"));
    let buffered = BlockFile::create_new(&path, false)?;
    let locked = buffered.lock_exclusive();
    buffered.remove()?;
    locked?;
    Ok(match buffered.reopen(Access::ReadWrite, true) {
        Ok(file) => (file, true),
        Err(_) => (buffered, false),
    })
}

struct Writer {
    file: BlockFile,
    direct: bool,
    at: u64,
    number: u64,
    block: Slot,
}

impl Writer {
    fn sample(&mut self, size: u64) -> Result<Sample, FileError> {
        let began = Instant::now();
        let mut left = size;
        while left > 0 {
            let bytes = left.min(BLOCK as u64) as usize;
            self.write(bytes)?;
            left -= bytes as u64;
        }
        if !self.direct {
            let written = self.file.write_out(0, 0);
            written.map_err(|errno| failed(&self.file, "write out", errno))?;
        }
        let write_ns = began.elapsed().as_nanos() as u64;
        let before = Instant::now();
        self.flush(false)?;
        let flush_ns = before.elapsed().as_nanos() as u64;
        Ok(Sample { flush: Flush { unflushed_bytes: size, flush_ns }, write_ns })
    }

    fn write(&mut self, bytes: usize) -> Result<(), FileError> {
        if self.at + bytes as u64 > SPAN {
            self.at = 0;
        }
        // A different start for each block, so that none can be stored as a duplicate of an earlier
        // one.
        self.number += 1;
        let key = self.number;
        let data = &mut self.block[..bytes];
        for chunk in data.chunks_mut(4096) {
            let head = chunk.len().min(32);
            rng::fill(key ^ rng::mix(self.at), &mut chunk[..head]);
        }
        let mut done = 0;
        while done < bytes {
            let written = self.file.write_at(self.at + done as u64, &data[done..]);
            match written.map_err(|errno| failed(&self.file, "write", errno))? {
                0 => return Err(self.file.error("write", std::io::ErrorKind::WriteZero.into())),
                more => done += more,
            }
        }
        self.at += bytes as u64;
        Ok(())
    }

    fn flush(&self, all: bool) -> Result<(), FileError> {
        let flushed = if all { self.file.fsync() } else { self.file.fdatasync() };
        flushed.map_err(|errno| failed(&self.file, "flush", errno))
    }
}

/// Further facts about the place where flushes were timed.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings<'a> {
    /// Kind of main memory that holds the files, if any.
    pub memory: Option<&'a str>,
    pub barrier_off: Option<&'a str>,
    /// Layers, with the flushes that each completed meanwhile.
    pub layers: &'a [Layer],
}

/// Draws the conclusions from the times.
pub fn judge(timed: &Timed, around: &Surroundings<'_>) -> Flushing {
    let flushes: Vec<Flush> = timed.samples.iter().map(|sample| sample.flush).collect();
    let slope = flushes::slope(&flushes).filter(|slope| slope.sizes.len() == SIZES.len());
    let largest = SIZES.iter().copied().max().unwrap_or(0);
    let mebibytes = largest as f64 / Bytes::mib(1).get() as f64;
    let of_largest = timed.samples.iter().filter(|it| it.flush.unflushed_bytes == largest);
    let writes: Vec<f64> = of_largest.map(|it| it.write_ns as f64 / mebibytes).collect();
    let write_ns_per_mib = quantile(writes, WRITE_QUANTILE);
    let asked_flushes = flushes.iter().filter(|flush| flush.unflushed_bytes > 0).count() as u64;
    let mut flushing = Flushing {
        class: Class::Unknown,
        evidence: String::new(),
        slope,
        write_ns_per_mib,
        asked_flushes,
    };
    (flushing.class, flushing.evidence) = classify(&flushing, timed.direct, around);
    flushing
}

fn quantile(mut values: Vec<f64>, share: f64) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get((values.len() as f64 * share) as usize).copied()
}

fn classify(flushing: &Flushing, direct: bool, around: &Surroundings<'_>) -> (Class, String) {
    if let Some(memory) = around.memory {
        return in_memory(memory);
    }
    let (Some(slope), Some(write)) = (&flushing.slope, flushing.write_ns_per_mib) else {
        return (Class::Unknown, "too slow: too few flushes were timed".to_owned());
    };
    if let Some(evidence) = unflushed(flushing.asked_flushes, around) {
        return (Class::Unflushed, evidence);
    }
    let text = shape(slope, write, direct);
    let (low, high) = (slope.ns_per_mib.low, slope.ns_per_mib.high);
    let is_slow = low >= FASTEST_NS_PER_MIB;
    if low >= MOVES * write || (is_slow && growth(slope) >= GROWS) {
        (Class::Volatile, format!("{text}: it writes out what was cached"))
    } else if high <= STAYS * write && !is_slow {
        let why = if around.layers.iter().any(|it| it.write_cache.as_deref() == Some("write back"))
        {
            "nothing was volatile, or the flush does nothing"
        } else {
            "no device declares a volatile cache"
        };
        (Class::Flat, format!("{text}: {why}; only a cut decides"))
    } else {
        (
            Class::Unknown,
            format!(
                "{text}: too little for a cache that is written out, too much \
                                  for none"
            ),
        )
    }
}

/// Returns the class of files in main memory, which needs no timing.
pub fn in_memory(memory: &str) -> (Class, String) {
    (Class::Memory, format!("kept in main memory ({memory}): nothing is durable"))
}

/// Returns how many times as long a flush takes after the most bytes as after none.
fn growth(slope: &FlushSlope) -> f64 {
    let ends = slope.ends();
    ends.map_or(1.0, |(least, most)| most.flush_ns_p50.value / least.flush_ns_p50.value.max(1.0))
}

/// Formats `a flush takes 302 µs after no write and 4.66 ms after 4 MiB, …`.
fn shape(slope: &FlushSlope, write_ns_per_mib: f64, direct: bool) -> String {
    let Some((least, most)) = slope.ends() else { return String::new() };
    let how = if direct { "" } else { ", through the page cache" };
    let more = match slope.ns_per_mib.value {
        ns if ns > 0.0 => format!("{} longer for each MiB", format_ns(ns)),
        _ => "not longer for each MiB".to_owned(),
    };
    format!(
        "a flush takes {} after no write and {} after {} (medians): {more}, which took {} to \
         write{how}",
        format_ns(least.flush_ns_p50.value),
        format_ns(most.flush_ns_p50.value),
        Bytes(most.unflushed_bytes),
        format_ns(write_ns_per_mib)
    )
}

/// Returns the evidence that flushes do not reach a device with a volatile cache.
fn unflushed(asked: u64, around: &Surroundings<'_>) -> Option<String> {
    let counting = around.layers.iter().find_map(|layer| Some((layer, layer.flush_ios?)));
    let (layer, flushes) = counting?;
    if layer.write_cache.as_deref() != Some("write back") || asked == 0 {
        return None;
    }
    let few = (flushes as f64) < FLUSHES_MIN * asked as f64;
    few.then(|| {
        let why = around.barrier_off.map(|option| format!(" (mounted {option})"));
        format!(
            "{} declares a volatile cache and received {flushes} flushes for {asked} that were \
             asked for{}",
            layer.name,
            why.unwrap_or_default()
        )
    })
}

#[cfg(test)]
mod tests {
    use blockstone_base::identity::DeviceKind;

    use super::*;

    /// Returns flushes that take `base` and `per_mib`, after writes that take `write`, in
    /// nanoseconds, next to a hog that delays one in `hog` by some milliseconds.
    fn timed(base: f64, per_mib: f64, write: f64, (hog, seed): (u64, u64)) -> Timed {
        let mut rng = Rng::new(seed, 7);
        let mut samples = Vec::new();
        for _ in 0..15 {
            for size in SIZES {
                let mib = size as f64 / 1_048_576.0;
                let mut late = || if hog > 0 && rng.below(hog) == 0 { 4e6 } else { 0.0 };
                let (late_write, late_flush) = (late(), late());
                let noise = 0.8 + 0.4 * rng.unit();
                let flush_ns = ((base + per_mib * mib) * noise + late_flush) as u64;
                let write_ns = (write * mib * noise + late_write) as u64;
                samples.push(Sample { flush: Flush { unflushed_bytes: size, flush_ns }, write_ns });
            }
        }
        Timed { samples, direct: true }
    }

    fn layer(write_cache: &str, flush_ios: u64) -> Layer {
        Layer {
            name: "loop0".to_owned(),
            kind: DeviceKind::Loop,
            model: None,
            write_cache: Some(write_cache.to_owned()),
            fua: Some(false),
            drive_cache: None,
            beneath: Vec::new(),
            flush_ios: Some(flush_ios),
        }
    }

    fn class(timed: &Timed, layer: Layer) -> Class {
        let layers = [layer];
        let around = Surroundings { memory: None, barrier_off: None, layers: &layers };
        let found = judge(timed, &around);
        println!("{:?}: {}", found.class, found.evidence);
        found.class
    }

    #[test]
    fn the_three_seen_devices_are_told_apart_beside_a_hog() {
        for seed in 0..40 {
            for hog in [0, 12] {
                // An honest cache, one that ignores flushes, and a protected one, as measured.
                for honest in [
                    timed(302e3, 1_090e3, 900e3, (hog, seed)),
                    timed(233e3, 1_000e3, 5_860e3, (hog, seed)),
                ] {
                    assert_eq!(class(&honest, layer("write back", 60)), Class::Volatile);
                }
                for flat in
                    [timed(87e3, 16e3, 900e3, (hog, seed)), timed(59e3, 22e3, 600e3, (hog, seed))]
                {
                    assert_eq!(class(&flat, layer("write back", 60)), Class::Flat);
                }
            }
        }
    }

    #[test]
    fn what_does_not_decide_is_unknown() {
        let between = timed(300e3, 170e3, 1_000e3, (0, 1));
        assert_eq!(class(&between, layer("write back", 60)), Class::Unknown);
        let mut few = timed(100e3, 900e3, 900e3, (0, 1));
        few.samples.truncate(20);
        assert_eq!(class(&few, layer("write back", 60)), Class::Unknown);
        assert_eq!(class(&Timed::default(), layer("write back", 60)), Class::Unknown);
    }

    #[test]
    fn nothing_in_main_memory_is_durable_whatever_its_flushes_take() {
        let around = Surroundings { memory: Some("zram0"), barrier_off: None, layers: &[] };
        for timed in [timed(1e3, 0.0, 1e3, (0, 1)), timed(302e3, 1_090e3, 900e3, (0, 1))] {
            assert_eq!(judge(&timed, &around).class, Class::Memory);
        }
    }

    #[test]
    fn flushes_that_do_not_reach_a_device_are_missed() {
        let flat = timed(5e3, 0.0, 900e3, (0, 1));
        assert_eq!(class(&flat, layer("write back", 3)), Class::Unflushed);
        assert_eq!(class(&flat, layer("write through", 0)), Class::Flat, "it needs none");
    }

    #[test]
    fn flushes_are_timed_on_a_file_that_has_no_name() {
        struct Silent;
        impl Observer for Silent {}
        let dir = tempfile::tempdir().unwrap();
        let timed = time(dir.path(), 3, (Duration::from_secs(20), 2), &mut Silent).unwrap();
        assert!(timed.samples.len() <= 2 * SIZES.len());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }
}

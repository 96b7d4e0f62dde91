//! A recording on disk: `manifest.json`, one Parquet file of raw counters per probe, histograms and
//! events. `docs/recording-format.md` describes every file and column.
//!
//! This crate stores and returns measurements. It must not know what the numbers mean: rates, rules
//! and figures are computed in `judge`, and nothing here queries the machine. It is the only crate
//! that knows Parquet.
//!
//! [`Recorder`] writes a recording, [`Recording`] reads one (finished, running or crashed),
//! [`list_runs`] lists them.
//!
//! ```
//! use blockstone_base::column::{Cell, Column, Kind, Schema, Unit};
//! use blockstone_record::{Recorder, Recording, manifest::End};
//! # let earlier = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/v1");
//! # let manifest = blockstone_record::read_manifest(earlier.as_ref())?;
//! # let parent = tempfile::tempdir().unwrap();
//! # let dir = parent.path().join("run");
//! static DISK: Schema = Schema {
//!     probe: "disk",
//!     doc: "One disk.",
//!     columns: &[Column {
//!         name: "read_bytes",
//!         unit: Unit::Bytes,
//!         kind: Kind::Counter,
//!         source: "/sys/block/*/stat",
//!         doc: "Bytes read.",
//!     }],
//! };
//!
//! let mut recorder = Recorder::create(&dir, manifest, &[&DISK])?;
//! recorder.row("disk", 0, 0, "vda", &[Cell::Value(4096)])?;
//! recorder.row("disk", 1_000, 0, "vda", &[Cell::Value(12_288)])?;
//! recorder.close(End::Complete)?;
//!
//! let series = Recording::open(&dir)?.series("disk")?;
//! assert_eq!(series.delta(0, "vda", 0, 1_000, "read_bytes"), Some(8192));
//! # Ok::<(), blockstone_record::RecordError>(())
//! ```

#![cfg_attr(not(test), warn(clippy::disallowed_methods))]

pub mod manifest;
pub mod parameters;
pub mod ranks;
pub mod scan;
#[cfg(any(test, feature = "testing"))]
pub mod testing;

mod bounds;
mod checksum;
mod disk;
mod elsewhere;
mod error;
mod labels;
mod levels;
mod parquet_file;
mod recorder;
mod recording;
mod remove;
mod rows;
mod runs;
mod segments;
mod series;
mod table;

#[cfg(test)]
mod tests;

pub use disk::{create_dir, write_file};
pub use elsewhere::note_elsewhere;
pub use error::RecordError;
pub use labels::{LABELS, Labels};
pub use levels::{Level, TICKS, ticks_of};
pub use manifest::{End, Manifest};
pub use parameters::Parameters;
pub use recorder::{Recorder, keep_judgement};
pub use recording::{Recording, TimeRange, read_manifest};
pub use remove::{removable, remove};
pub use rows::{Event, HistogramRow, LatencyClock};
pub use runs::{
    GRID, PAGE, RUNS, RunDir, RunEntry, RunState, list_grid, list_runs, list_runs_in, lock_grid,
    new_run_dir, out_run_dir,
};
pub use series::{Series, SeriesRow};

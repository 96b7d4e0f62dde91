//! Time limits for the parts of a calibration.

use blockstone_base::units::{Bytes, Nanos};

use crate::settings::Thoroughness;

/// Largest test file of a calibration that is to be relied on.
const DEFAULT_SIZE: Bytes = Bytes::gib(4);

pub struct Budget {
    /// Largest test file, unless `--size` is given.
    pub file: Bytes,
    /// Longest layout, unless `--size` is given.
    pub layout: Nanos,
    /// Time limit of a whole calibration, not counting the layout of a given `--size`.
    pub run: Option<Nanos>,
    pub(super) warm_up: Nanos,
    pub(super) point: Nanos,
    pub(super) short: Nanos,
    /// Time for each headline, all its windows together.
    pub(super) confirm: Nanos,
    /// Number of windows of a headline, spaced apart: changes of a rate over seconds show only
    /// between them.
    pub(super) windows: u32,
    pub(super) open_loop: Nanos,
    pub(super) rounds: u32,
}

/// Returns the time limits of a calibration.
pub const fn budget(thoroughness: Thoroughness) -> Budget {
    match thoroughness {
        Thoroughness::Brief => Budget {
            file: Bytes::mib(512),
            layout: Nanos::millis(4_000),
            // Its plan is short enough, and tests on a busy machine need all of it.
            run: None,
            warm_up: Nanos::millis(50),
            point: Nanos::millis(200),
            short: Nanos::millis(160),
            confirm: Nanos::millis(320),
            windows: 1,
            open_loop: Nanos::millis(500),
            rounds: 1,
        },
        Thoroughness::Quick => Budget {
            file: DEFAULT_SIZE,
            layout: Nanos::millis(3_000),
            run: Some(Nanos::millis(20_000)),
            warm_up: Nanos::millis(100),
            point: Nanos::millis(300),
            short: Nanos::millis(240),
            confirm: Nanos::millis(720),
            windows: 1,
            open_loop: Nanos::millis(1_000),
            rounds: 1,
        },
        Thoroughness::Standard => Budget {
            file: DEFAULT_SIZE,
            layout: Nanos::millis(11_000),
            run: Some(Nanos::millis(90_000)),
            warm_up: Nanos::millis(250),
            point: Nanos::millis(900),
            short: Nanos::millis(660),
            confirm: Nanos::millis(2_400),
            windows: 3,
            open_loop: Nanos::millis(3_000),
            rounds: 1,
        },
        Thoroughness::Full => Budget {
            file: DEFAULT_SIZE,
            layout: Nanos::millis(60_000),
            run: None,
            warm_up: Nanos::millis(500),
            point: Nanos::millis(2_500),
            short: Nanos::millis(1_500),
            confirm: Nanos::millis(4_800),
            windows: 3,
            open_loop: Nanos::millis(6_000),
            rounds: 3,
        },
    }
}

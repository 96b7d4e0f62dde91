//! Detects steps of the wall clock and suspends of the machine, by comparing them with the
//! monotonic clock.

use blockstone_base::units::format_ns;
use rustix::time::{ClockId, clock_gettime};

/// Smaller steps of the wall clock are NTP's adjustments.
const STEP_NS: i128 = 200_000_000;

/// Offsets of the wall and boot clocks from the monotonic one.
#[derive(Debug)]
pub struct Clocks {
    wall_ns: i128,
    boot_ns: i128,
}

/// A clock jump that a reader of the recording must know about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Jump {
    /// `clock-step` or `suspend`.
    pub kind: &'static str,
    pub detail: String,
}

impl Clocks {
    pub fn now() -> Self {
        let monotonic_ns = read(ClockId::Monotonic);
        Self {
            wall_ns: read(ClockId::Realtime) - monotonic_ns,
            boot_ns: read(ClockId::Boottime) - monotonic_ns,
        }
    }

    /// Returns the time since 1970 at an instant of the monotonic clock, as the wall clock is set
    /// now.
    pub fn realtime_ns(&self, monotonic_ns: u64) -> i128 {
        self.wall_ns + i128::from(monotonic_ns)
    }

    pub fn look(&mut self) -> Vec<Jump> {
        let now = Self::now();
        let jumps = self.jumps_to(&now);
        *self = now;
        jumps
    }

    fn jumps_to(&self, now: &Self) -> Vec<Jump> {
        let slept_ns = now.boot_ns - self.boot_ns;
        // Sleep advances the wall clock too; the rest was set.
        let set_ns = now.wall_ns - self.wall_ns - slept_ns;
        let long = |ns: i128| format_ns(ns.unsigned_abs() as f64);
        let mut jumps = Vec::new();
        if slept_ns > STEP_NS {
            let detail = format!("the machine slept for {}", long(slept_ns));
            jumps.push(Jump { kind: "suspend", detail });
        }
        if set_ns.abs() > STEP_NS {
            let direction = if set_ns > 0 { "forward" } else { "back" };
            let detail = format!("the wall clock was set {direction} by {}", long(set_ns));
            jumps.push(Jump { kind: "clock-step", detail });
        }
        jumps
    }
}

fn read(clock: ClockId) -> i128 {
    let now = clock_gettime(clock);
    i128::from(now.tv_sec) * 1_000_000_000 + i128::from(now.tv_nsec)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleep_and_setting_the_clock_are_distinguished() {
        let before = Clocks { wall_ns: 1_000, boot_ns: 0 };
        let kinds = |wall_ns: i128, boot_ns: i128| -> Vec<&str> {
            let jumps = before.jumps_to(&Clocks { wall_ns, boot_ns });
            jumps.iter().map(|jump| jump.kind).collect()
        };
        assert!(kinds(1_500, 300).is_empty());
        assert_eq!(kinds(9_000_001_000, 9_000_000_000), ["suspend"]);
        assert_eq!(kinds(-3_600_000_000_000, 0), ["clock-step"]);
        assert_eq!(kinds(20_000_000_000, 9_000_000_000), ["suspend", "clock-step"]);
        let detail = &before.jumps_to(&Clocks { wall_ns: -5_000_000_000, boot_ns: 0 })[0].detail;
        assert!(detail.contains("back by 5"), "{detail}");
    }

    #[test]
    fn nothing_jumps_while_nothing_happens() {
        assert!(Clocks::now().look().is_empty());
    }
}

//! The wall clock of the host relative to the time of a history.

use blockstone_record::Manifest;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Smaller steps are the normal adjustments of a synchronised clock.
const STEP_NS: i128 = 200_000_000;

/// Maps times in a history to what the host's clock showed, and back.
#[derive(Clone, Debug)]
pub struct WallClock {
    /// From each instant on, the nanoseconds by which the clock is ahead of the history, in order
    /// of time.
    ahead_ns: Vec<(u64, i128)>,
    pub(crate) zone: TimeZone,
}

impl Default for WallClock {
    fn default() -> Self {
        Self { ahead_ns: Vec::new(), zone: TimeZone::UTC }
    }
}

impl WallClock {
    /// Reads the clock of a recorded host. It is unknown if the manifest does not say when the
    /// recording began.
    pub fn of(manifest: &Manifest) -> Self {
        let mut clock = Self::default();
        let Ok(started) = manifest.started_at.parse::<Timestamp>() else { return clock };
        clock.set(0, started.as_nanosecond());
        // A clock that was set in between shows the new time from the next reading on.
        let first = manifest.clocks.first().map_or(0, |first| first.realtime_offset_ns);
        for reading in &manifest.clocks {
            let by = i128::from(reading.realtime_offset_ns) - i128::from(first);
            clock.set(reading.t_ns, started.as_nanosecond() + by);
        }
        clock
    }

    pub(crate) fn set(&mut self, t_ns: u64, ahead_ns: i128) {
        let last = self.ahead_ns.last();
        if last.is_none_or(|(_, last_ns)| (ahead_ns - last_ns).abs() > STEP_NS) {
            self.ahead_ns.push((t_ns, ahead_ns));
        }
    }

    /// Returns the time of the clock in nanoseconds since 1970, `None` if that is not known.
    pub fn realtime_ns(&self, t_ns: u64) -> Option<i128> {
        let before = self.ahead_ns.partition_point(|(since_ns, _)| *since_ns <= t_ns);
        let (_, ahead_ns) = self.ahead_ns.get(before.saturating_sub(1))?;
        Some(ahead_ns + i128::from(t_ns))
    }

    /// Returns the first time in the history at which the clock showed this. If it never did,
    /// because it was set forward or the history began later, returns the time at which it came
    /// closest.
    pub fn t_ns(&self, realtime_ns: i128) -> Option<u64> {
        let ends = self.ahead_ns.iter().skip(1).map(|(since_ns, _)| *since_ns).chain([u64::MAX]);
        let found =
            self.ahead_ns.iter().zip(ends).enumerate().map(|(index, ((since, ahead), end))| {
                let t_ns = u64::try_from((realtime_ns - ahead).max(0)).unwrap_or(u64::MAX);
                t_ns.clamp(if index == 0 { 0 } else { *since }, end)
            });
        let away = |t_ns: &u64| self.realtime_ns(*t_ns).map(|ns| ns.abs_diff(realtime_ns));
        found.min_by_key(away)
    }

    pub(crate) fn local_s(&self, t_ns: u64) -> Option<f64> {
        let realtime_ns = self.realtime_ns(t_ns)?;
        let instant = Timestamp::from_nanosecond(realtime_ns).ok()?;
        let offset_s = self.zone.to_offset(instant).seconds();
        Some(realtime_ns as f64 / 1e9 + f64::from(offset_s))
    }

    pub(crate) fn text(&self, t_ns: u64) -> Option<String> {
        let instant = Timestamp::from_nanosecond(self.realtime_ns(t_ns)?).ok()?;
        let local = instant.to_zoned(self.zone.clone());
        Some(local.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_was_set_shows_another_time_from_then_on() {
        let mut clock = WallClock::default();
        assert_eq!(clock.text(0), None);
        let start_ns = 1_795_489_200_000_000_000;
        clock.set(5, start_ns);
        clock.set(2_000_000_000, start_ns + 1_000);
        clock.set(3_000_000_000, start_ns + 3_600_000_000_000);
        assert_eq!(clock.text(1_000_000_000).as_deref(), Some("2026-11-24T03:00:01+00:00"));
        assert_eq!(clock.realtime_ns(0), Some(start_ns), "also before it was read");
        for t_ns in [0, 1_000_000_000, 3_000_000_000, 9_000_000_000] {
            assert_eq!(clock.t_ns(clock.realtime_ns(t_ns).unwrap()), Some(t_ns));
        }
        assert_eq!(clock.t_ns(0), Some(0), "before it began");
        let skipped = start_ns + 1_800_000_000_000;
        assert!(
            clock.t_ns(skipped).is_some_and(|t_ns| t_ns <= 3_000_000_000),
            "it never showed it"
        );
        assert_eq!(WallClock::default().t_ns(start_ns), None);
        clock.zone = TimeZone::fixed(jiff::tz::offset(-5));
        assert_eq!(clock.text(3_000_000_000).as_deref(), Some("2026-11-23T23:00:03-05:00"));
        assert_eq!(clock.local_s(3_000_000_000), Some(1_795_489_203.0 - 5.0 * 3_600.0 + 3_600.0));
    }
}

//! Instants of the wall clock.

use blockstone_record::Manifest;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// As ISO 8601 in the time zone of this machine, with its distance from UTC. With milliseconds if
/// `exact`.
pub fn local(ns: i128, exact: bool) -> String {
    let Ok(instant) = Timestamp::from_nanosecond(ns) else { return "-".to_owned() };
    let format = if exact { "%Y-%m-%dT%H:%M:%S%.3f%:z" } else { "%Y-%m-%dT%H:%M:%S%:z" };
    instant.to_zoned(TimeZone::system()).strftime(format).to_string()
}

/// As ISO 8601 in UTC, with milliseconds. None before the year -9999 and after 9999.
pub fn utc(ns: i128) -> Option<String> {
    let instant = Timestamp::from_nanosecond(ns).ok()?;
    Some(instant.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string())
}

/// What the wall clock of the recorded machine showed at an instant of the recording, in
/// nanoseconds since 1970. None if the manifest does not say when it began.
pub fn of_recording(manifest: &Manifest, t_ns: u64) -> Option<i128> {
    let started: Timestamp = manifest.started_at.parse().ok()?;
    // A clock that was set in between shows another time from the next reading on.
    let mut readings = manifest.clocks.iter().filter(|reading| reading.t_ns <= t_ns);
    let set_ns = match (manifest.clocks.first(), readings.next_back()) {
        (Some(first), Some(last)) => {
            i128::from(last.realtime_offset_ns) - i128::from(first.realtime_offset_ns)
        }
        _ => 0,
    };
    Some(started.as_nanosecond() + i128::from(t_ns) + set_ns)
}

#[cfg(test)]
mod tests {
    use blockstone_record::manifest::ClockReading;

    use super::*;
    use blockstone_record::testing;

    #[test]
    fn instants_follow_a_clock_that_was_set() {
        let mut manifest = testing::manifest();
        manifest.started_at = "2026-11-24T03:00:00Z".to_owned();
        let reading =
            |t_ns, realtime_offset_ns| ClockReading { t_ns, realtime_offset_ns, ..READING };
        manifest.clocks = vec![reading(0, 7), reading(5_000_000_000, 3_600_000_000_007)];
        let at = |t_ns| Timestamp::from_nanosecond(of_recording(&manifest, t_ns).unwrap()).unwrap();
        assert_eq!(at(4_000_000_000).to_string(), "2026-11-24T03:00:04Z");
        assert_eq!(at(6_000_000_000).to_string(), "2026-11-24T04:00:06Z");
        manifest.started_at = "yesterday".to_owned();
        assert_eq!(of_recording(&manifest, 0), None);
    }

    const READING: ClockReading =
        ClockReading { t_ns: 0, realtime_offset_ns: 0, boottime_offset_ns: 0 };

    #[test]
    fn local_time_says_how_far_it_is_from_utc() {
        let text = local(1_795_489_200_123_000_000, true);
        let parsed: Timestamp = text.parse().unwrap();
        assert_eq!(parsed.as_nanosecond(), 1_795_489_200_123_000_000);
        assert_eq!(
            local(1_795_489_200_123_000_000, false).len(),
            "2026-11-24T03:00:00+00:00".len()
        );
    }
}

//! Decodes log pages of `NVMe` controllers into numbers.

/// SMART / Health Information (log page 02h, NVM Express Base Specification 2.0, figure 207).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Health {
    /// Bits, as in [`WARNINGS`].
    pub critical_warning: u8,
    /// `None` if the controller has no temperature.
    pub temperature_kelvin: Option<u16>,
    pub available_spare_percent: u8,
    pub spare_threshold_percent: u8,
    /// Up to 255: the vendor's estimate of the life used may pass 100 %.
    pub used_percent: u8,
    /// `None` if the controller does not report it.
    pub read_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
    pub read_commands: u64,
    pub write_commands: u64,
    pub busy_minutes: u64,
    pub power_cycles: u64,
    pub power_on_hours: u64,
    pub unsafe_shutdowns: u64,
    pub media_errors: u64,
    pub error_log_entries: u64,
    /// Minutes above the temperature that the controller warns of, and above the critical one.
    pub warm_minutes: u32,
    pub critical_minutes: u32,
    /// How often the controller slowed itself down to cool: lightly, and at any cost.
    pub throttled: [u32; 2],
    /// Seconds for which it did.
    pub throttled_s: [u32; 2],
}

/// SMART / Health Information Extended, on the media (log page C0h, OCP Datacenter `NVMe` SSD
/// Specification 2.0, section 4.8.6).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OcpHealth {
    pub media_written_bytes: u64,
    pub media_read_bytes: u64,
}

impl Health {
    /// Returns whether the controller warns of its temperature.
    pub fn is_hot(&self) -> bool {
        self.critical_warning & 2 != 0
    }
}

/// Meanings of the bits of a critical warning, from the lowest.
pub const WARNINGS: [&str; 6] = [
    "spare below threshold",
    "temperature",
    "reliability degraded",
    "read-only",
    "volatile memory backup failed",
    "persistent memory read-only",
];

/// A data unit is a thousand blocks of 512 bytes, whatever the block size.
const DATA_UNIT_BYTES: u128 = 512_000;
/// Bytes defined by the specifications; the rest of a page is reserved.
const HEALTH_BYTES: usize = 232;
const OCP_BYTES: usize = 512;
/// Identifies the OCP log among other logs with its number, in the last 16 bytes.
const OCP_GUID: u128 = 0xAFD5_14C9_7C6F_4F9C_A4F2_BFEA_2810_AFC5;

/// Decodes a page; `None` if it is too short.
pub fn health(page: &[u8]) -> Option<Health> {
    let page = page.get(..HEALTH_BYTES)?;
    let kelvin = u16::from_le_bytes([page[1], page[2]]);
    let count = |at| bounded(counter(page, at));
    let small = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|byte| page[at + byte]));
    // Zero means that they are not reported, unless there was no command. Units are rounded up.
    let units = |at, commands_at| {
        let units = counter(page, at);
        let is_reported = units > 0 || counter(page, commands_at) == 0;
        is_reported.then(|| bounded(units.saturating_mul(DATA_UNIT_BYTES)))
    };
    Some(Health {
        critical_warning: page[0],
        temperature_kelvin: (kelvin > 0).then_some(kelvin),
        available_spare_percent: page[3],
        spare_threshold_percent: page[4],
        used_percent: page[5],
        read_bytes: units(32, 64),
        written_bytes: units(48, 80),
        read_commands: count(64),
        write_commands: count(80),
        busy_minutes: count(96),
        power_cycles: count(112),
        power_on_hours: count(128),
        unsafe_shutdowns: count(144),
        media_errors: count(160),
        error_log_entries: count(176),
        warm_minutes: small(192),
        critical_minutes: small(196),
        throttled: [small(216), small(220)],
        throttled_s: [small(224), small(228)],
    })
}

/// Decodes a page; `None` if it is too short or another vendor's.
pub fn ocp_health(page: &[u8]) -> Option<OcpHealth> {
    let page = page.get(..OCP_BYTES)?;
    (counter(page, OCP_BYTES - 16) == OCP_GUID).then(|| OcpHealth {
        media_written_bytes: bounded(counter(page, 0)),
        media_read_bytes: bounded(counter(page, 16)),
    })
}

/// Returns the warnings of a byte, separated by commas; `none` if there are none.
pub fn warnings(byte: u8) -> String {
    if byte == 0 {
        return "none".to_owned();
    }
    let set = (0..u8::BITS as usize).filter(|bit| byte >> bit & 1 == 1);
    let words = set.map(|bit| WARNINGS.get(bit).copied().unwrap_or("reserved"));
    words.collect::<Vec<_>>().join(", ")
}

/// Reads 16 bytes, little-endian; zero beyond the end.
fn counter(page: &[u8], at: usize) -> u128 {
    let bytes = page.get(at..at + 16).and_then(|bytes| bytes.try_into().ok());
    bytes.map_or(0, u128::from_le_bytes)
}

/// Limits a value to the largest that can be recorded.
fn bounded(value: u128) -> u64 {
    u64::try_from(value).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Creates a page with these 16-byte counters.
    fn page(counters: &[(usize, u128)]) -> Vec<u8> {
        let mut page = vec![0; 512];
        for (at, value) in counters {
            page[*at..at + 16].copy_from_slice(&value.to_le_bytes());
        }
        page
    }

    #[test]
    fn each_field_of_a_health_page_is_read_at_its_place() {
        let mut page = page(&[
            (32, 1009),
            (48, 2003),
            (64, 3001),
            (80, 4001),
            (96, 5003),
            (112, 6007),
            (128, 7001),
            (144, 8009),
            (160, 9001),
            (176, 10_007),
        ]);
        page[..6].copy_from_slice(&[0b101, 0x37, 0x01, 97, 11, 103]);
        page[192..197].copy_from_slice(&[1, 1, 0, 0, 3]);
        for (at, value) in [(216, 5), (220, 7), (224, 11), (228, 13)] {
            page[at] = value;
        }
        let expected = Health {
            critical_warning: 5,
            temperature_kelvin: Some(311),
            available_spare_percent: 97,
            spare_threshold_percent: 11,
            used_percent: 103,
            read_bytes: Some(1009 * 512_000),
            written_bytes: Some(2003 * 512_000),
            read_commands: 3001,
            write_commands: 4001,
            busy_minutes: 5003,
            power_cycles: 6007,
            power_on_hours: 7001,
            unsafe_shutdowns: 8009,
            media_errors: 9001,
            error_log_entries: 10_007,
            warm_minutes: 257,
            critical_minutes: 3,
            throttled: [5, 7],
            throttled_s: [11, 13],
        };
        assert_eq!(health(&page), Some(expected));
        assert_eq!(warnings(5), "spare below threshold, reliability degraded");
        assert_eq!((warnings(0), warnings(0x80)), ("none".into(), "reserved".into()));
        assert_eq!(health(&page[..231]), None);
        assert!(health(&page[..232]).is_some());
    }

    #[test]
    fn what_is_not_reported_is_not_zero_and_what_is_too_large_stays_large() {
        let unused = health(&[0; 512]).unwrap();
        assert_eq!((unused.read_bytes, unused.written_bytes), (Some(0), Some(0)));
        assert_eq!(unused.temperature_kelvin, None);
        let silent = health(&page(&[(64, 3), (80, 5)])).unwrap();
        assert_eq!((silent.read_bytes, silent.written_bytes), (None, None));
        let most = health(&[0xFF; 512]).unwrap();
        assert_eq!((most.read_bytes, most.power_on_hours), (Some(u64::MAX), u64::MAX));
    }

    #[test]
    fn a_page_of_ocp_is_known_by_its_identifier() {
        let guid = (496, OCP_GUID);
        let page = page(&[(0, 104_729), (16, 7919), guid]);
        // Bytes as given by the specification and other tools.
        assert_eq!(page[496..500], [0xC5, 0xAF, 0x10, 0x28]);
        let expected = OcpHealth { media_written_bytes: 104_729, media_read_bytes: 7919 };
        assert_eq!(ocp_health(&page), Some(expected));
        assert_eq!(ocp_health(&page[..511]), None);
        let mut other = page;
        other[511] ^= 1;
        assert_eq!(ocp_health(&other), None, "another vendor's log");
    }

    #[test]
    fn a_page_of_any_length_is_taken_or_refused() {
        for len in 0..600_usize {
            let page: Vec<u8> = (0..len).map(|at| (at * 37 % 256) as u8).collect();
            assert_eq!(health(&page).is_some(), len >= HEALTH_BYTES, "{len}");
            assert_eq!(ocp_health(&page), None);
        }
    }
}

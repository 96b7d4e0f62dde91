//! `--what-if`: the predictions that are requested.

use std::str::FromStr;

use blockstone_base::units::Nanos;

/// A condition under which the statements would have run.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Rows per fetch.
    Array(Vec<u32>),
    /// Time of a round trip to the client.
    RoundTrip(Nanos),
    /// Factor on the time of single-block reads.
    Read(f64),
    /// Share of these reads that memory serves.
    Hits(f64),
}

const HINT: &str = "array=100,500, round-trip=1ms, read=0.5 or hits=0.9 is expected";

impl FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once('=').ok_or(HINT)?;
        let number = |most: f64| {
            let number = value.parse().ok().filter(|it: &f64| (0.0..=most).contains(it));
            number.ok_or_else(|| format!("{key} takes a number from 0 to {most}"))
        };
        match key {
            "array" => {
                let rows = value.split(',').map(|rows| rows.parse().ok().filter(|rows| *rows > 0));
                let rows: Option<Vec<u32>> = rows.collect();
                Ok(Self::Array(rows.ok_or("array takes numbers of rows, for example 100,500")?))
            }
            "round-trip" => Ok(Self::RoundTrip(value.parse().map_err(|error| format!("{error}"))?)),
            "read" => Ok(Self::Read(number(1000.0)?)),
            "hits" => Ok(Self::Hits(number(1.0)?)),
            _ => Err(HINT.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_has_a_key_and_values() {
        assert_eq!("array=10,500".parse(), Ok(Change::Array(vec![10, 500])));
        assert_eq!("round-trip=1ms".parse(), Ok(Change::RoundTrip(Nanos::millis(1))));
        assert_eq!("read=0.5".parse(), Ok(Change::Read(0.5)));
        for bad in ["array=0", "array=", "hits=2", "hits=nan", "x=1", "read", "round-trip=1"] {
            assert!(bad.parse::<Change>().is_err(), "{bad}");
        }
    }
}

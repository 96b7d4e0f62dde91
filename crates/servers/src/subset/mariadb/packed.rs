//! Packs the whole numbers that identify a row into one number, if they fit.

use super::values::Kind;
use super::{Server, quoted};
use crate::mariadb::answer;
use crate::sql::error::{During, SqlError};

/// Width in bits and minimum of one of the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    bits: u32,
    least: i128,
}

impl Field {
    fn new(least: i128, most: i128) -> Self {
        let range = most.saturating_sub(least).max(0).cast_unsigned();
        Self { bits: u128::BITS - range.leading_zeros(), least }
    }

    /// Returns the range of a type.
    fn of(type_name: &str) -> Self {
        const BITS: [(&str, u32); 5] =
            [("tinyint", 8), ("smallint", 16), ("mediumint", 24), ("bigint", 64), ("int", 32)];
        // Includes years.
        let bits = BITS.iter().find(|(name, _)| type_name.starts_with(name)).map_or(16, |it| it.1);
        let range = 1_i128 << bits;
        if type_name.contains("unsigned") || type_name.starts_with("year") {
            Self::new(0, range - 1)
        } else {
            Self::new(-range / 2, range / 2 - 1)
        }
    }
}

/// How the values of several columns are packed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packed(Vec<Field>);

impl Packed {
    /// Returns the packing for these columns, given by name, kind and type; `None` if they are not
    /// whole numbers or too large.
    pub fn find(
        server: &mut Server,
        table: &str,
        columns: &[(String, Kind, String)],
    ) -> Result<Option<Self>, SqlError> {
        if columns.len() < 2 || columns.iter().any(|(_, kind, _)| *kind != Kind::Integer) {
            return Ok(None);
        }
        let of_types = columns.iter().map(|(_, _, type_name)| Field::of(type_name));
        let mut packed = Self(of_types.collect());
        if !packed.fits() {
            // Fast, because the first column has an index.
            let first = quoted(&columns[0].0);
            let ask = format!("SELECT MIN({first}), MAX({first}) FROM {}", quoted(table));
            let ends: Option<(Option<String>, Option<String>)> =
                answer::first(&mut server.link, &ask).during("read the range of a key")?;
            let number = |text: Option<String>| text?.parse::<i128>().ok();
            let ends = ends.and_then(|(least, most)| number(least).zip(number(most)));
            packed.0[0] =
                ends.map_or(Field { bits: 0, least: 0 }, |(least, most)| Field::new(least, most));
        }
        Ok(packed.fits().then_some(packed))
    }

    fn fits(&self) -> bool {
        self.0.iter().map(|field| field.bits).sum::<u32>() <= u64::BITS
    }

    /// Packs values given as text; `None` if one is out of range.
    pub fn pack<'f>(&self, mut values: impl Iterator<Item = Option<&'f [u8]>>) -> Option<u64> {
        let mut packed = 0_u128;
        for field in &self.0 {
            let text = std::str::from_utf8(values.next()??).ok()?;
            let above = text.parse::<i128>().ok()?.checked_sub(field.least)?;
            let above = u128::try_from(above).ok().filter(|above| above >> field.bits == 0)?;
            packed = packed << field.bits | above;
        }
        u64::try_from(packed).ok()
    }

    /// Returns the values as SQL.
    pub fn unpack(&self, packed: u64) -> Vec<String> {
        let mut rest = u128::from(packed);
        let mut values = Vec::with_capacity(self.0.len());
        for field in self.0.iter().rev() {
            let above = rest & ((1 << field.bits) - 1);
            rest >>= field.bits;
            values.push((above.cast_signed() + field.least).to_string());
        }
        values.reverse();
        values
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_is_unpacked_again() {
        for (types, values) in [
            (["int(11)", "int(10) unsigned"], ["-2147483648", "4294967295"]),
            (["bigint(20)", "year(4)"], ["-9223372036854775808", "2155"]),
            (["tinyint(4)", "mediumint(8) unsigned zerofill"], ["-1", "16777215"]),
        ] {
            let packed = Packed(types.map(Field::of).to_vec());
            let bytes = values.map(|value| Some(value.as_bytes()));
            match packed.pack(bytes.into_iter()) {
                Some(number) => assert_eq!(packed.unpack(number), values),
                None => assert!(!packed.fits(), "{types:?}"),
            }
        }
        let small = Packed(vec![Field::new(5, 9), Field::of("int")]);
        assert_eq!(small.pack([Some(&b"4"[..]), Some(b"1")].into_iter()), None);
        assert_eq!(small.pack([Some(&b"13"[..]), Some(b"1")].into_iter()), None);
        assert_eq!(
            small.unpack(small.pack([Some(&b"9"[..]), Some(b"-1")].into_iter()).unwrap()),
            ["9", "-1"]
        );
    }
}

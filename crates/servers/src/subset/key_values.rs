//! Key values as bytes: each field is preceded by its length, so that equal values have equal
//! bytes.

/// Bytes of the length prefix.
const LENGTH: usize = 4;

/// The key values of one row. The buffers are reused for the next row.
#[derive(Default)]
pub struct KeyValues {
    bytes: Vec<u8>,
    places: Vec<Option<(usize, usize)>>,
}

impl KeyValues {
    /// Returns the value of each key, given the positions of its fields in the row; `None` if one
    /// of them is NULL. `append` appends a field to the buffer.
    pub fn of(
        &mut self,
        keys: &[Vec<usize>],
        append: impl Fn(usize, &mut Vec<u8>) -> Option<()>,
    ) -> Vec<Option<&[u8]>> {
        self.bytes.clear();
        self.places.clear();
        for key in keys {
            let begin = self.bytes.len();
            let mut is_whole = true;
            for &at in key {
                let from = self.bytes.len();
                self.bytes.extend([0; LENGTH]);
                is_whole &= append(at, &mut self.bytes).is_some();
                let length = self.bytes.len() - from - LENGTH;
                self.bytes[from..from + LENGTH].copy_from_slice(&(length as u32).to_be_bytes());
            }
            self.places.push(is_whole.then_some((begin, self.bytes.len())));
        }
        self.places.iter().map(|place| place.map(|(from, to)| &self.bytes[from..to])).collect()
    }
}

/// Returns the fields of a value. A truncated value ends with `None`.
pub fn fields(mut value: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    std::iter::from_fn(move || {
        if value.is_empty() {
            return None;
        }
        let mut take = || {
            let (length, rest) = value.split_at_checked(LENGTH)?;
            let length = u32::from_be_bytes(length.try_into().ok()?) as usize;
            let (field, rest) = rest.split_at_checked(length)?;
            value = rest;
            Some(field)
        };
        let taken = take();
        if taken.is_none() {
            value = &[];
        }
        Some(taken)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back_and_a_null_makes_no_value() {
        let row: [Option<&[u8]>; 3] = [Some(b"a"), None, Some(b"")];
        let mut values = KeyValues::default();
        let keys = [vec![0, 2], vec![0, 1], vec![]];
        let found = values.of(&keys, |at, out| row[at].map(|value| out.extend(value)));
        assert_eq!((found[1], found[2]), (None, Some(&[][..])));
        let value = found[0].unwrap();
        assert_eq!(fields(value).collect::<Vec<_>>(), [Some(&b"a"[..]), Some(b"")]);
        assert_eq!(fields(&value[..value.len() - 1]).last(), Some(None), "it was cut off");
        assert_eq!(fields(&[]).count(), 0);
    }
}

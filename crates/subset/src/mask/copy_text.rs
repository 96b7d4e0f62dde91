//! Escapes of COPY's text format.

/// The field that represents NULL.
pub const NULL: &[u8] = b"\\N";

/// Decodes the value of a field that is not NULL.
pub fn unescape(field: &[u8], value: &mut Vec<u8>) {
    value.clear();
    let mut rest = field;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'\\' {
            value.push(byte);
            continue;
        }
        let Some((&escaped, after)) = rest.split_first() else {
            value.push(b'\\');
            return;
        };
        rest = after;
        match escaped {
            b'b' => value.push(8),
            b'f' => value.push(12),
            b'n' => value.push(b'\n'),
            b'r' => value.push(b'\r'),
            b't' => value.push(b'\t'),
            b'v' => value.push(11),
            b'x' if rest.first().is_some_and(u8::is_ascii_hexdigit) => {
                value.push(number(&mut rest, 16, 2));
            }
            b'0'..=b'7' => {
                rest = field.get(field.len() - rest.len() - 1..).unwrap_or_default();
                value.push(number(&mut rest, 8, 3));
            }
            other => value.push(other),
        }
    }
}

/// Parses a byte of at most `most` digits, as COPY does: larger numbers are truncated to a byte.
fn number(rest: &mut &[u8], radix: u32, most: usize) -> u8 {
    let mut value = 0_u32;
    for _ in 0..most {
        let Some((&byte, after)) = rest.split_first() else { break };
        let Some(digit) = char::from(byte).to_digit(radix) else { break };
        value = value * radix + digit;
        *rest = after;
    }
    value as u8
}

/// Appends `value` as a field, using only escapes that MariaDB's LOAD DATA also reads.
pub fn escape(value: &[u8], out: &mut Vec<u8>) {
    for &byte in value {
        match byte {
            b'\\' => out.extend(b"\\\\"),
            b'\n' => out.extend(b"\\n"),
            b'\r' => out.extend(b"\\r"),
            b'\t' => out.extend(b"\\t"),
            plain => out.push(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn unescaped(field: &[u8]) -> Vec<u8> {
        let mut value = Vec::new();
        unescape(field, &mut value);
        value
    }

    proptest! {
        #[test]
        fn what_is_escaped_is_read_back(value: Vec<u8>) {
            let mut field = Vec::new();
            escape(&value, &mut field);
            prop_assert!(!field.contains(&b'\t') && !field.contains(&b'\n'));
            prop_assert_ne!(&field[..], NULL);
            prop_assert_eq!(unescaped(&field), value);
        }

        #[test]
        fn any_field_is_read(field: Vec<u8>) {
            prop_assert!(unescaped(&field).len() <= field.len());
        }
    }

    #[test]
    fn all_escapes_of_copy_are_known() {
        let field = br"\b\f\n\r\t\v\\\x41\x4g\101\1019\.\";
        assert_eq!(unescaped(field), b"\x08\x0c\n\r\t\x0b\\A\x04gAA9.\\");
    }
}

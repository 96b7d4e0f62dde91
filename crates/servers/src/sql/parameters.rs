//! Parameters in a server's address that we interpret because the driver does not know them.

use percent_encoding::percent_decode_str;

/// Names and values.
pub type Taken = Vec<(&'static str, String)>;

/// Removes the parameters with these names from `address`. Returns the remaining address, and each
/// name with its value. If a name occurs twice, the last value counts.
pub fn take(address: &str, names: &[&'static str]) -> (String, Taken) {
    // A password may contain a question mark.
    let host = address.find('@').unwrap_or(0);
    let Some(mark) = address[host..].find('?').map(|mark| host + mark) else {
        return (address.to_owned(), Vec::new());
    };
    let mut taken = Taken::new();
    let mut left = Vec::new();
    for parameter in address[mark + 1..].split('&') {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        match names.iter().find(|known| **known == name) {
            Some(name) => {
                taken.retain(|(other, _)| other != name);
                taken.push((name, percent_decode_str(value).decode_utf8_lossy().into_owned()));
            }
            None => left.push(parameter),
        }
    }
    let rest = if left.is_empty() { String::new() } else { format!("?{}", left.join("&")) };
    (format!("{}{rest}", &address[..mark]), taken)
}

/// Returns the value of a parameter that was taken.
pub fn value<'a>(taken: &'a Taken, name: &str) -> Option<&'a str> {
    taken.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_parameters_are_taken_and_others_stay() {
        let names = ["sslmode", "sslrootcert"];
        for (address, rest, mode) in [
            ("//u@h/d?sslmode=require", "//u@h/d", Some("require")),
            ("//u:a?b@h/d?x=1&sslmode=ver%69fy-full&y", "//u:a?b@h/d?x=1&y", Some("verify-full")),
            ("//h?sslmode=a&sslmode=b", "//h", Some("b")),
            ("//u@h/d?sslmodes=1", "//u@h/d?sslmodes=1", None),
            ("//u@h/d", "//u@h/d", None),
        ] {
            let (left, taken) = take(address, &names);
            assert_eq!((left.as_str(), value(&taken, "sslmode")), (rest, mode), "{address}");
        }
    }
}

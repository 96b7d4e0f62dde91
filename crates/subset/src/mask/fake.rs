//! Invented names, addresses and numbers, chosen by the hash of the value that they replace.

use serde::Deserialize;

use super::permute::Keyed;

const FIRST: [&str; 32] = [
    "Ada", "Amir", "Anna", "Boris", "Carla", "Chen", "Daniel", "Elif", "Emma", "Farid", "Grace",
    "Hana", "Ines", "Ivan", "Jonas", "Karin", "Kofi", "Lea", "Luis", "Marta", "Mei", "Nadia",
    "Noah", "Olga", "Paul", "Priya", "Rosa", "Samir", "Sofia", "Tom", "Uma", "Viktor",
];
const LAST: [&str; 32] = [
    "Adler", "Becker", "Bose", "Costa", "Diaz", "Eriksen", "Fischer", "Garcia", "Haas", "Ito",
    "Jansen", "Kaya", "Keller", "Kovac", "Larsen", "Lopez", "Martin", "Meyer", "Moreau", "Novak",
    "Okoro", "Patel", "Petrov", "Rossi", "Sato", "Silva", "Smith", "Sousa", "Tanaka", "Visser",
    "Weber", "Yilmaz",
];
const STREETS: [&str; 8] =
    ["Beech", "Bridge", "Garden", "Hill", "Lake", "Mill", "Station", "Willow"];
/// Area codes. The numbers 555-0100 to 555-0199 of each are never assigned.
const AREAS: [u16; 8] = [202, 303, 404, 505, 606, 707, 808, 909];
/// Bytes of the shortest e-mail address generated: 16 digits and the domain.
const SHORTEST_EMAIL: u32 = 28;

/// The kind of value to invent.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq)]
#[serde(rename_all = "kebab-case")]
pub enum Fake {
    Name,
    FirstName,
    LastName,
    Email,
    Phone,
    Street,
}

impl Fake {
    /// Returns the characters that a column must hold.
    pub const fn needs(self) -> u32 {
        match self {
            Self::Name => 15,
            Self::FirstName | Self::LastName => 7,
            Self::Email => SHORTEST_EMAIL,
            Self::Phone => 12,
            Self::Street => 19,
        }
    }

    /// Whether different values stay different: an e-mail address contains 64 bits of the hash, so
    /// the probability that two of a million are equal is 3 in 100 million.
    pub const fn keeps_distinct(self) -> bool {
        matches!(self, Self::Email)
    }

    pub fn invent(self, keyed: &Keyed, value: &str, limit: Option<u32>) -> String {
        let hash = keyed.number(&[value.as_bytes()]);
        let other = keyed.number(&[value.as_bytes(), b"2"]);
        let (first, last) = (pick(&FIRST, other), pick(&LAST, other >> 16));
        match self {
            Self::Name => format!("{first} {last}"),
            Self::FirstName => first.to_owned(),
            Self::LastName => last.to_owned(),
            Self::Email => {
                let (first, last) = (first.to_lowercase(), last.to_lowercase());
                let long = format!("{first}.{last}.{hash:016x}@example.com");
                let is_short = limit.is_none_or(|limit| long.len() <= limit as usize);
                if is_short { long } else { format!("{hash:016x}@example.com") }
            }
            Self::Phone => {
                format!("+1{}55501{:02}", AREAS[(other >> 32) as usize % AREAS.len()], hash % 100)
            }
            Self::Street => format!("{} Street {}", pick(&STREETS, other >> 32), 1 + hash % 9999),
        }
    }
}

/// Picks one of the values of a list.
pub fn pick<T: AsRef<str>>(list: &[T], hash: u64) -> &str {
    list.get((hash % (list.len() as u64).max(1)) as usize).map_or("", AsRef::as_ref)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Fake; 6] =
        [Fake::Name, Fake::FirstName, Fake::LastName, Fake::Email, Fake::Phone, Fake::Street];

    #[test]
    fn what_is_invented_fits_and_repeats() {
        let keyed = Keyed::new(b"key", "test");
        for fake in ALL {
            for number in 0..500 {
                let value = number.to_string();
                let made = fake.invent(&keyed, &value, Some(fake.needs()));
                assert!(made.len() <= fake.needs() as usize, "{made}");
                assert!(made.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' '));
                assert_eq!(made, fake.invent(&keyed, &value, Some(fake.needs())));
            }
        }
    }

    #[test]
    fn nobody_is_reached() {
        let keyed = Keyed::new(b"key", "test");
        for number in 0..100 {
            let value = number.to_string();
            assert!(Fake::Email.invent(&keyed, &value, None).ends_with("@example.com"));
            let phone = Fake::Phone.invent(&keyed, &value, None);
            assert!(phone.starts_with("+1") && phone[5..].starts_with("55501"), "{phone}");
        }
    }
}

//! Finds columns that seem to hold personal data, by their names; values are not read.

use crate::catalogue::Catalogue;

/// The kind of personal data that a column seems to hold.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Personal {
    Name,
    FirstName,
    LastName,
    Email,
    Phone,
    Address,
    Birth,
    Identity,
    Bank,
    Secret,
    Network,
    Health,
}

impl Personal {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::FirstName => "first name",
            Self::LastName => "last name",
            Self::Email => "e-mail address",
            Self::Phone => "telephone number",
            Self::Address => "postal address",
            Self::Birth => "date of birth",
            Self::Identity => "number of an identity",
            Self::Bank => "bank account or card",
            Self::Secret => "password or token",
            Self::Network => "network address",
            Self::Health => "health or belief",
        }
    }
}

/// Words in English, German, French, Spanish, Portuguese, Italian, Dutch, Polish and Swedish,
/// without accents and joined: `first_name`, `firstName` and `FIRSTNAME` are `firstname`.
const WORDS: [(Personal, &[&str]); 11] = [
    (
        Personal::FirstName,
        &[
            "firstname",
            "givenname",
            "forename",
            "middlename",
            "vorname",
            "prenom",
            "primernombre",
            "primeironome",
            "voornaam",
            "imie",
            "fornamn",
        ],
    ),
    (
        Personal::LastName,
        &[
            "lastname",
            "surname",
            "familyname",
            "nachname",
            "familienname",
            "nomdefamille",
            "apellido",
            "apellidos",
            "sobrenome",
            "cognome",
            "achternaam",
            "nazwisko",
            "efternamn",
            "maidenname",
            "geburtsname",
        ],
    ),
    (
        Personal::Email,
        &["email", "mail", "emailaddress", "courriel", "correo", "epost", "mailadresse"],
    ),
    (
        Personal::Phone,
        &[
            "phone",
            "telephone",
            "mobile",
            "cell",
            "fax",
            "tel",
            "telefon",
            "telefono",
            "telefone",
            "telefoon",
            "handy",
            "rufnummer",
            "portable",
            "movil",
            "celular",
            "cellulare",
            "msisdn",
            "phonenumber",
            "whatsapp",
        ],
    ),
    (
        Personal::Address,
        &[
            "address",
            "street",
            "zip",
            "zipcode",
            "postcode",
            "postalcode",
            "adresse",
            "strasse",
            "hausnummer",
            "plz",
            "rue",
            "codepostal",
            "direccion",
            "calle",
            "endereco",
            "rua",
            "cep",
            "indirizzo",
            "cap",
            "adres",
            "straat",
            "ulica",
            "gata",
            "latitude",
            "longitude",
        ],
    ),
    (
        Personal::Birth,
        &[
            "birth",
            "birthday",
            "birthdate",
            "dob",
            "dateofbirth",
            "geburtsdatum",
            "geburtstag",
            "naissance",
            "datedenaissance",
            "nacimiento",
            "nascimento",
            "nascita",
            "geboortedatum",
            "urodzenia",
            "fodelsedatum",
        ],
    ),
    (
        Personal::Identity,
        &[
            "ssn",
            "socialsecurity",
            "passport",
            "nationalid",
            "taxid",
            "driverlicense",
            "licenseplate",
            "reisepass",
            "personalausweis",
            "steuernummer",
            "steuerid",
            "sozialversicherungsnummer",
            "passeport",
            "dni",
            "nif",
            "nie",
            "curp",
            "cpf",
            "rg",
            "codicefiscale",
            "bsn",
            "pesel",
            "personnummer",
            "nino",
            "kennzeichen",
        ],
    ),
    (
        Personal::Bank,
        &[
            "iban",
            "bic",
            "accountnumber",
            "bankaccount",
            "kontonummer",
            "creditcard",
            "cardnumber",
            "ccnumber",
            "cvv",
            "cvc",
            "kreditkarte",
            "cartebancaire",
            "tarjeta",
            "salary",
            "gehalt",
            "salaire",
            "salario",
        ],
    ),
    (
        Personal::Secret,
        &[
            "password",
            "passwd",
            "pwd",
            "passwordhash",
            "secret",
            "token",
            "apikey",
            "passwort",
            "kennwort",
            "motdepasse",
            "contrasena",
            "senha",
            "wachtwoord",
            "haslo",
            "losenord",
        ],
    ),
    (Personal::Network, &["ip", "ipaddress", "ipaddr", "ipadresse", "macaddress", "useragent"]),
    (
        Personal::Health,
        &[
            "diagnosis",
            "diagnose",
            "bloodtype",
            "disability",
            "religion",
            "ethnicity",
            "gender",
            "sex",
            "geschlecht",
            "krankheit",
            "sexe",
            "sexo",
            "sesso",
        ],
    ),
];

/// Such a column holds a person's name if its table, or another word of its name, is a person.
const NAMES: [&str; 9] =
    ["name", "fullname", "nom", "nombre", "nome", "naam", "namn", "nazwa", "displayname"];
const PERSONS: [&str; 40] = [
    "person",
    "people",
    "user",
    "customer",
    "client",
    "contact",
    "employee",
    "member",
    "patient",
    "student",
    "teacher",
    "staff",
    "author",
    "guest",
    "subscriber",
    "applicant",
    "candidate",
    "kunde",
    "kunden",
    "benutzer",
    "mitarbeiter",
    "mitglied",
    "patienten",
    "utilisateur",
    "employe",
    "personne",
    "cliente",
    "usuario",
    "empleado",
    "persona",
    "utente",
    "dipendente",
    "klant",
    "gebruiker",
    "klient",
    "actor",
    "owner",
    "holder",
    "sender",
    "recipient",
];
/// Last words of columns that describe a value rather than hold it.
const ABOUT: [&str; 12] = [
    "id", "count", "verified", "sent", "enabled", "type", "status", "template", "flag", "valid",
    "subject", "at",
];
/// Maximum number of words in a name that are joined: no list has an entry of more.
const JOINED: usize = 4;

/// Returns the columns that seem to hold personal data, as `schema.table.column`.
pub fn columns(catalogue: &Catalogue) -> impl Iterator<Item = (String, Personal)> {
    catalogue.tables.iter().flat_map(|table| {
        let short = table.name.split_once('.').map_or(table.name.as_str(), |(_, short)| short);
        table.columns.iter().filter_map(move |column| {
            let what = personal(short, &column.name)?;
            Some((format!("{}.{}", table.name, column.name), what))
        })
    })
}

/// Returns the kind of personal data that the column seems to hold.
pub fn personal(table: &str, column: &str) -> Option<Personal> {
    let words = words(column);
    if words.last().is_some_and(|last| words.len() > 1 && ABOUT.contains(&last.as_str())) {
        // `tax_id` and `national_id` end in `id`, but do hold an identity.
        let whole = words.concat();
        let (_, identities) = WORDS.iter().find(|(what, _)| *what == Personal::Identity)?;
        return identities.contains(&whole.as_str()).then_some(Personal::Identity);
    }
    for (what, list) in &WORDS {
        let found = (0..words.len()).any(|from| {
            let ends = from + 1..=words.len().min(from + JOINED);
            ends.into_iter().any(|to| list.contains(&words[from..to].concat().as_str()))
        });
        if found {
            return Some(*what);
        }
    }
    let is_person = |word: &String| {
        let singular = word.strip_suffix('s').unwrap_or(word);
        PERSONS.contains(&word.as_str()) || PERSONS.contains(&singular)
    };
    let is_name = NAMES.contains(&words.concat().as_str())
        || words.last().is_some_and(|last| NAMES.contains(&last.as_str()));
    let mut about = words.clone();
    about.extend(self::words(table));
    let is_full = ["fullname", "displayname"].contains(&words.concat().as_str());
    (is_name && (is_full || about.iter().any(is_person))).then_some(Personal::Name)
}

/// Splits a name into words, in lower case and without accents.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for at in name.chars().take(200) {
        if !at.is_alphanumeric() {
            words.push(String::new());
            was_lower = false;
            continue;
        }
        if at.is_uppercase() && was_lower {
            words.push(String::new());
        }
        was_lower = at.is_lowercase();
        let Some(word) = words.last_mut() else { continue };
        at.to_lowercase().for_each(|lower| word.push_str(plain(lower, &mut [0; 4])));
    }
    words.retain(|word| !word.is_empty());
    words
}

fn plain(letter: char, buffer: &mut [u8; 4]) -> &str {
    match letter {
        'á' | 'à' | 'â' | 'ã' | 'ä' | 'å' | 'ą' => "a",
        'ç' | 'ć' => "c",
        'é' | 'è' | 'ê' | 'ë' | 'ę' => "e",
        'í' | 'ì' | 'î' | 'ï' => "i",
        'ł' => "l",
        'ñ' | 'ń' => "n",
        'ó' | 'ò' | 'ô' | 'õ' | 'ö' | 'ø' => "o",
        'ß' => "ss",
        'ś' => "s",
        'ú' | 'ù' | 'û' | 'ü' => "u",
        other => other.encode_utf8(buffer),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_in_several_languages_are_found() {
        let cases = [
            ("users", "email", Personal::Email),
            ("users", "EMailAddress", Personal::Email),
            ("users", "FIRST_NAME", Personal::FirstName),
            ("kunden", "Nachname", Personal::LastName),
            ("kunden", "straße", Personal::Address),
            ("clients", "prénom", Personal::FirstName),
            ("clientes", "teléfono_fijo", Personal::Phone),
            ("klanten", "geboortedatum", Personal::Birth),
            ("t", "date_of_birth", Personal::Birth),
            ("t", "billing_postal_code", Personal::Address),
            ("t", "tax_id", Personal::Identity),
            ("t", "passwordHash", Personal::Secret),
            ("t", "client_ip", Personal::Network),
            ("t", "customer_name", Personal::Name),
            ("Customer", "name", Personal::Name),
            ("actors", "name", Personal::Name),
            ("accounts", "iban", Personal::Bank),
        ];
        for (table, column, what) in cases {
            assert_eq!(personal(table, column), Some(what), "{table}.{column}");
        }
    }

    #[test]
    fn other_columns_are_not() {
        let names =
            ["id", "price", "description", "email_id", "email_verified", "zipper", "name", ""];
        for column in names.into_iter().chain(["address_id", "created_at", "___", "shipping"]) {
            assert_eq!(personal("product", column), None, "{column}");
        }
    }
}

//! Access control: a web page must not reach an endpoint that only listens locally, and other hosts
//! need a token.

use std::fmt;
use std::net::IpAddr;
use std::path::Path;

use blockstone_base::units::Bytes;
use blockstone_sys::secret::{self, Owner};
use ctutils::CtEq;
use hyper::header::{AUTHORIZATION, HOST, HeaderValue};
use hyper::http::uri::Authority;
use hyper::{HeaderMap, Uri};

use crate::WatchError;

/// Length of 128 random bits in base 64.
const TOKEN_BYTES_MIN: usize = 22;
const TOKEN_BYTES_MAX: usize = 4096;

/// Rules for the requests that are answered.
#[derive(Debug, Default)]
pub struct Access {
    /// Names of this host besides `localhost` and its addresses.
    pub names: Vec<String>,
    pub token: Option<Token>,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Refusal {
    /// Contains the text of the answer.
    Host(String),
    Token,
}

impl Access {
    /// Checks a request received at the address `local`.
    ///
    /// A browser that shows a page of `evil.example` sends this name as the host even if the name
    /// now resolves to one of our addresses (DNS rebinding).
    pub fn check(&self, uri: &Uri, headers: &HeaderMap, local: IpAddr) -> Result<(), Refusal> {
        let mut named = false;
        for value in headers.get_all(HOST) {
            let authority = Authority::try_from(value.as_bytes());
            self.check_host(authority.as_ref().ok(), local)?;
            named = true;
        }
        if let Some(authority) = uri.authority() {
            self.check_host(Some(authority), local)?;
        }
        if !named {
            return Err(Refusal::Host("the header Host is missing\n".to_owned()));
        }
        let Some(token) = &self.token else { return Ok(()) };
        let given = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        if given.is_some_and(|given| token.is_in(given)) { Ok(()) } else { Err(Refusal::Token) }
    }

    fn check_host(&self, asked: Option<&Authority>, local: IpAddr) -> Result<(), Refusal> {
        let host = asked.filter(|asked| !asked.as_str().contains('@')).map(Authority::host);
        let host = host.unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        let known = match host.parse::<IpAddr>().map(|address| address.to_canonical()) {
            Ok(address) => address.is_loopback() || address == local.to_canonical(),
            Err(_) => host.eq_ignore_ascii_case("localhost"),
        };
        if known || self.names.iter().any(|name| name.eq_ignore_ascii_case(host)) {
            return Ok(());
        }
        let why = "this name of the host is not served: --listen-host NAME adds one\n";
        Err(Refusal::Host(why.to_owned()))
    }
}

/// Checks a name or an address as used in a URL, without port.
pub fn host_name(text: &str) -> Result<String, String> {
    let address = text.parse::<IpAddr>().is_ok();
    let name = text.parse::<Authority>().is_ok_and(|authority| authority.host() == text);
    if address || name {
        Ok(text.to_owned())
    } else {
        Err("it must be a name or an address, without port".to_owned())
    }
}

/// The secret of a scraper.
pub struct Token(Vec<u8>);

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

impl Token {
    /// Reads the token from a file that other users may not read.
    pub fn read(path: &Path) -> Result<Self, WatchError> {
        let failed = |why: String| WatchError::Token { path: path.to_owned(), why };
        // Two bytes more, for the line ending.
        let text = secret::read(path, Bytes(TOKEN_BYTES_MAX as u64 + 2), Owner::Trusted)
            .map_err(|error| failed(error.to_string()))?;
        let token = text.trim_ascii();
        if !(TOKEN_BYTES_MIN..=TOKEN_BYTES_MAX).contains(&token.len()) {
            let len = token.len();
            return Err(failed(format!(
                "a token has {TOKEN_BYTES_MIN} to {TOKEN_BYTES_MAX} characters, not {len}"
            )));
        }
        if !token.iter().all(u8::is_ascii_graphic) {
            return Err(failed("a token is one word of printable ASCII characters".to_owned()));
        }
        Ok(Self(token.to_owned()))
    }

    /// Whether an `Authorization` header contains it. The comparison takes constant time.
    fn is_in(&self, header: &[u8]) -> bool {
        let Some((scheme, given)) = header.split_at_checked(b"Bearer ".len()) else { return false };
        scheme.eq_ignore_ascii_case(b"Bearer ")
            && given.trim_ascii().ct_eq(self.0.as_slice()).to_bool()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use blockstone_base::hint::Hint as _;

    use super::*;

    const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 7));

    fn check(access: &Access, uri: &str, headers: &[(&'static str, &str)]) -> Result<(), Refusal> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        access.check(&uri.parse().unwrap(), &map, LOCAL)
    }

    #[test]
    fn only_names_of_this_host_are_served() {
        let access = Access { names: vec!["db1.example".into(), "fe80::1".into()], token: None };
        for host in [
            "localhost",
            "LOCALHOST:80",
            "127.0.0.1:9750",
            "127.9.9.9",
            "[::1]:9750",
            "10.0.0.7:1",
            "[::ffff:10.0.0.7]",
            "DB1.example:9750",
            "[fe80::1]",
        ] {
            assert_eq!(check(&access, "/", &[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "10.0.0.8",
            "0.0.0.0",
            "",
            "db1.example.evil",
            "localhost.evil",
            "evil@localhost",
            "localhost@evil",
            "local host",
            "[::2]",
            "a,localhost",
        ] {
            let refused = check(&access, "/", &[("host", host)]);
            assert!(matches!(refused, Err(Refusal::Host(_))), "{host}");
        }
        assert!(check(&access, "/", &[]).is_err());
        assert!(check(&access, "http://evil.example/", &[("host", "localhost")]).is_err());
        assert!(check(&access, "/", &[("host", "localhost"), ("host", "evil.example")]).is_err());
    }

    #[test]
    fn the_token_is_wanted_whole() {
        let access =
            Access { names: Vec::new(), token: Some(Token(b"0123456789abcdef012345".to_vec())) };
        let with =
            |value: &str| check(&access, "/", &[("host", "localhost"), ("authorization", value)]);
        assert_eq!(with("Bearer 0123456789abcdef012345"), Ok(()));
        assert_eq!(with("bearer  0123456789abcdef012345 "), Ok(()));
        for wrong in [
            "",
            "Bearer",
            "Bearer ",
            "Bearer 0123456789abcdef01234",
            "Basic x",
            "Bearer 0123456789abcdef0123456",
            "0123456789abcdef012345",
            "Basic  0123456789abcdef012345",
        ] {
            assert_eq!(with(wrong), Err(Refusal::Token), "{wrong}");
        }
        assert_eq!(check(&access, "/", &[("host", "localhost")]), Err(Refusal::Token));
        assert!(check(&access, "/", &[("host", "evil")]).is_err());
        assert_eq!(format!("{access:?}").find("0123"), None);
    }

    #[test]
    fn a_token_file_is_for_nobody_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("token");
        let refused = |why: &str| {
            let error = Token::read(&path).unwrap_err().told();
            assert!(error.contains(why) && error.contains("\nhint: "), "{error}");
        };
        refused("No such file");
        let mode = |mode| std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
        std::fs::write(&path, "0123456789abcdef012345\n").unwrap();
        mode(0o640);
        refused("mode 640");
        mode(0o600);
        assert_eq!(Token::read(&path).unwrap().0, b"0123456789abcdef012345");
        for (text, why) in [("", "not 0"), ("short", "not 5"), ("two words of enough bytes", "one")]
        {
            std::fs::write(&path, text).unwrap();
            refused(why);
        }
        std::fs::write(&path, vec![b'a'; TOKEN_BYTES_MAX + 3]).unwrap();
        refused("larger than");
        std::fs::remove_file(&path).unwrap();
        rustix::fs::mkfifoat(rustix::fs::CWD, &path, rustix::fs::Mode::RUSR).unwrap();
        refused("not a regular file");
    }

    #[test]
    fn host_names_have_no_port() {
        assert!(["db1", "db1.example", "10.0.0.7", "fe80::1"].iter().all(|t| host_name(t).is_ok()));
        assert!(["db1:80", "", "a b", "http://a", "u@a"].iter().all(|t| host_name(t).is_err()));
    }
}

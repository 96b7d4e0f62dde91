//! TLS to servers: whether a connection uses it, and whose certificates it trusts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme,
};

/// Modes with libpq's names and meanings, each stricter than the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    Disable,
    /// TLS if the server offers it.
    Prefer,
    /// TLS, without verifying the server.
    Require,
    /// TLS with a certificate of a trusted authority, for any name.
    VerifyCa,
    /// The same, for the name of the host.
    VerifyFull,
}

impl Mode {
    /// Returns libpq's name of the mode.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disable => "disable",
            Self::Prefer => "prefer",
            Self::Require => "require",
            Self::VerifyCa => "verify-ca",
            Self::VerifyFull => "verify-full",
        }
    }

    /// Returns the mode to use if `asked` was requested: a server on another machine is not
    /// contacted without TLS unless that was requested by name.
    pub fn settled(asked: Option<Self>, is_local: bool) -> Self {
        match asked {
            None | Some(Self::Prefer) if is_local => Self::Prefer,
            None | Some(Self::Prefer) => Self::Require,
            Some(asked) => asked,
        }
    }
}

#[derive(Clone, Debug)]
pub struct Tls {
    pub mode: Mode,
    /// The file of the trusted authorities; `None` trusts those of the system.
    pub roots: Option<PathBuf>,
    /// The client's certificate and its key.
    pub identity: Option<(PathBuf, PathBuf)>,
}

impl Tls {
    /// Returns the client configuration; `None` without TLS.
    pub fn client(&self) -> Result<Option<Arc<ClientConfig>>, String> {
        if self.mode == Mode::Disable {
            return Ok(None);
        }
        let provider = Arc::new(ring::default_provider());
        let verifier = Arc::new(self.verifier(&provider)?);
        let client = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .dangerous()
            .with_custom_certificate_verifier(verifier);
        let client = match &self.identity {
            None => client.with_no_client_auth(),
            Some((certificate, key)) => {
                let own = certificates(certificate)?;
                let unread = |error| format!("read the key in {}: {error}", key.display());
                let read = PrivateKeyDer::from_pem_file(key).map_err(unread)?;
                let refused = |error| format!("use the key in {}: {error}", key.display());
                client.with_client_auth_cert(own, read).map_err(refused)?
            }
        };
        Ok(Some(Arc::new(client)))
    }

    fn verifier(&self, provider: &Arc<CryptoProvider>) -> Result<Verifier, String> {
        let chain = if self.mode >= Mode::VerifyCa {
            let path = self.roots.clone().or_else(system_roots);
            let path = path.ok_or("the system has no file of certificate authorities")?;
            let mut roots = RootCertStore::empty();
            // Certificates of the system may be of a kind that is no longer supported.
            roots.add_parsable_certificates(certificates(&path)?);
            let built =
                WebPkiServerVerifier::builder_with_provider(roots.into(), Arc::clone(provider));
            let unfit = |error| format!("use the authorities in {}: {error}", path.display());
            Some(built.build().map_err(unfit)?)
        } else {
            None
        };
        let any_name = self.mode != Mode::VerifyFull;
        Ok(Verifier { chain, any_name, provider: Arc::clone(provider) })
    }
}

/// Returns the file of the authorities that this system trusts.
pub fn system_roots() -> Option<PathBuf> {
    openssl_probe::probe().cert_file
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    match read {
        Ok(none) if none.is_empty() => Err(format!("{} holds no certificate", path.display())),
        read => read.map_err(|error| format!("read certificates in {}: {error}", path.display())),
    }
}

/// Verifies that the server holds the key of the certificate it presents; further checks depend on
/// the mode.
#[derive(Debug)]
struct Verifier {
    /// `None` if any certificate is accepted.
    chain: Option<Arc<WebPkiServerVerifier>>,
    any_name: bool,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        use CertificateError::{NotValidForName, NotValidForNameContext};
        let Some(chain) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        match chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now) {
            // The name is checked last.
            Err(Error::InvalidCertificate(NotValidForName | NotValidForNameContext { .. }))
                if self.any_name =>
            {
                Ok(ServerCertVerified::assertion())
            }
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Returns a hint for a server that does not offer TLS although it is required; `without` is the
/// parameter that turns it off.
pub fn missing_hint(without: &str) -> String {
    format!(
        "turn TLS on in the server; or, where nobody can read or change what passes between, add \
         {without} to the address"
    )
}

/// Returns a hint for a rejected certificate; `roots` is the parameter that names a file.
pub fn refused_hint(roots: &str) -> String {
    format!(
        "name the file of the authority that issued the server's certificate with {roots}=FILE, \
         and the host as that certificate does"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_elsewhere_is_not_spoken_to_without_tls_unless_that_is_asked_for() {
        use Mode::{Disable, Prefer, Require, VerifyCa, VerifyFull};
        for (asked, here, elsewhere) in [
            (None, Prefer, Require),
            (Some(Prefer), Prefer, Require),
            (Some(Disable), Disable, Disable),
            (Some(Require), Require, Require),
            (Some(VerifyCa), VerifyCa, VerifyCa),
            (Some(VerifyFull), VerifyFull, VerifyFull),
        ] {
            assert_eq!([true, false].map(|it| Mode::settled(asked, it)), [here, elsewhere]);
        }
    }

    #[test]
    fn a_file_that_holds_no_certificate_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("roots.pem");
        let client = || {
            let roots = Some(path.clone());
            Tls { mode: Mode::VerifyFull, roots, identity: None }.client().unwrap_err()
        };
        assert!(client().contains("roots.pem"), "{}", client());
        std::fs::write(&path, "no certificate").unwrap();
        assert!(client().contains("holds no certificate"), "{}", client());
    }
}

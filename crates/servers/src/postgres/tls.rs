//! The stream below the PostgreSQL driver: TLS by rustls if the server offers it, and limits on the
//! length of messages ([`Frames`]).
//!
//! The driver is configured for direct TLS negotiation, so it hands over each network connection
//! before it reads from it, and the negotiation takes place here.

use std::convert::Infallible;
use std::fmt;
use std::io::{self, Error, ErrorKind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use postgres::Socket;
use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use sha2::{Digest, Sha256, Sha384, Sha512};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::frames::Frames;

/// The client's request for TLS, and the server's reply if it agrees.
const REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];
const AGREED: u8 = b'S';

/// Opens connections.
#[derive(Clone, Debug)]
pub struct Connector {
    /// Without it, connections do not use TLS.
    pub client: Option<Arc<ClientConfig>>,
    pub otherwise: Otherwise,
    /// Once set, reads from connections made with this connector return nothing more.
    pub closing: Arc<AtomicBool>,
}

impl Connector {
    /// Creates a connector without TLS.
    pub fn plain() -> Self {
        Self { client: None, otherwise: Otherwise::DoWithout, closing: Arc::default() }
    }
}

/// Behaviour if the server does not offer TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Otherwise {
    Refuse,
    DoWithout,
}

/// A connection to be made.
pub struct Handshake {
    connector: Connector,
    host: String,
}

/// Why TLS could not be negotiated.
#[derive(Debug)]
pub enum Disagreed {
    NotOffered,
    /// The server did not reply as PostgreSQL does.
    NoAnswer(Error),
    Failed(Error),
}

impl fmt::Display for Disagreed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotOffered => f.write_str("server does not support TLS"),
            Self::NoAnswer(error) | Self::Failed(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Disagreed {}

pub struct Guarded {
    stream: Stream,
    frames: Frames,
    closing: Arc<AtomicBool>,
    /// Whether the driver has had a chance to say goodbye since `closing` was set.
    is_closing: bool,
}

enum Stream {
    Plain(Socket),
    Secured(Box<TlsStream<Socket>>),
}

impl MakeTlsConnect<Socket> for Connector {
    type Stream = Guarded;
    type TlsConnect = Handshake;
    type Error = Infallible;

    fn make_tls_connect(&mut self, host: &str) -> Result<Handshake, Infallible> {
        Ok(Handshake { connector: self.clone(), host: host.to_owned() })
    }
}

impl TlsConnect<Socket> for Handshake {
    type Stream = Guarded;
    type Error = Disagreed;
    type Future = Pin<Box<dyn Future<Output = Result<Guarded, Disagreed>> + Send>>;

    fn connect(self, stream: Socket) -> Self::Future {
        Box::pin(async move {
            let closing = Arc::clone(&self.connector.closing);
            let stream = self.agree(stream).await?;
            Ok(Guarded { stream, frames: Frames::default(), closing, is_closing: false })
        })
    }
}

impl Handshake {
    async fn agree(self, mut stream: Socket) -> Result<Stream, Disagreed> {
        let Connector { client, otherwise, .. } = self.connector;
        let Some(client) = client else { return Ok(Stream::Plain(stream)) };
        let mut answer = [0];
        stream.write_all(&REQUEST).await.map_err(Disagreed::NoAnswer)?;
        stream.read_exact(&mut answer).await.map_err(Disagreed::NoAnswer)?;
        if answer != [AGREED] {
            return match otherwise {
                Otherwise::DoWithout => Ok(Stream::Plain(stream)),
                Otherwise::Refuse => Err(Disagreed::NotOffered),
            };
        }
        let unfit = |why| Disagreed::Failed(Error::new(ErrorKind::InvalidInput, why));
        let name = ServerName::try_from(self.host.clone());
        let name = name.map_err(|error| unfit(format!("{}: {error}", self.host)))?;
        let secured = TlsConnector::from(client).connect(name, stream).await;
        Ok(Stream::Secured(Box::new(secured.map_err(Disagreed::Failed)?)))
    }
}

impl postgres::tls::TlsStream for Guarded {
    fn channel_binding(&self) -> ChannelBinding {
        let Stream::Secured(stream) = &self.stream else { return ChannelBinding::none() };
        let (_, session) = stream.get_ref();
        let shown = session.peer_certificates().and_then(<[_]>::first);
        match shown.and_then(|certificate| end_point(certificate)) {
            Some(hash) => ChannelBinding::tls_server_end_point(hash),
            None => ChannelBinding::none(),
        }
    }
}

/// Returns the hash of a certificate with which SCRAM binds a password to the connection: that of
/// the certificate's signature, or `None` if the signature has none (RFC 5929).
fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    const RSA: [u8; 8] = [0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA: [u8; 7] = [0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    let (whole, _) = element(certificate)?;
    let (_, after) = element(whole)?;
    let (algorithm, _) = element(after)?;
    let (name, _) = element(algorithm)?;
    let rsa = name.strip_prefix(&RSA);
    let ecdsa = name.strip_prefix(&ECDSA);
    // MD5 and SHA-1 are replaced by SHA-256.
    match (rsa, ecdsa) {
        (Some([4 | 5 | 11]), _) | (_, Some([2])) => Some(Sha256::digest(certificate).to_vec()),
        (Some([12]), _) | (_, Some([3])) => Some(Sha384::digest(certificate).to_vec()),
        (Some([13]), _) | (_, Some([4])) => Some(Sha512::digest(certificate).to_vec()),
        _ => None,
    }
}

/// Splits DER into the contents of its first element and the bytes after it.
fn element(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&[_, len], rest) = bytes.split_first_chunk()?;
    let (len, rest) = match len {
        0..=0x7f => (usize::from(len), rest),
        0x81..=0x83 => {
            let (digits, rest) = rest.split_at_checked(usize::from(len - 0x80))?;
            (digits.iter().fold(0, |len, digit| len << 8 | usize::from(*digit)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(len)
}

impl AsyncRead for Guarded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.closing.load(Ordering::Relaxed) {
            if self.is_closing {
                return Poll::Ready(Ok(()));
            }
            self.is_closing = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        let before = into.filled().len();
        let Self { stream, frames, .. } = &mut *self;
        ready!(match stream {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, into),
            Stream::Secured(stream) => Pin::new(stream).poll_read(context, into),
        })?;
        Poll::Ready(frames.feed(&into.filled()[before..]))
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Secured(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(context),
            Stream::Secured(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.stream {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Secured(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a certificate that consists only of its signature's algorithm.
    fn signed_by(algorithm: &[u8]) -> Vec<u8> {
        let der = |tag: u8, bytes: &[u8]| [&[tag, bytes.len() as u8], bytes].concat();
        let named = der(0x30, &der(6, algorithm));
        // A body whose length needs an extra byte.
        let body = [&[0x30, 0x81, 0x80][..], &[0; 0x80]].concat();
        let whole = [body, named, der(3, &[0; 9])].concat();
        [&[0x30, 0x82, 0, whole.len() as u8], &whole[..]].concat()
    }

    #[test]
    fn a_certificate_is_hashed_as_it_was_signed() {
        let rsa = |last: u8| signed_by(&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, last]);
        for (last, bytes) in [(5, 32), (11, 32), (12, 48), (13, 64)] {
            assert_eq!(end_point(&rsa(last)).unwrap().len(), bytes);
        }
        assert_eq!(end_point(&rsa(11)).unwrap(), Sha256::digest(rsa(11)).to_vec());
        let ecdsa = signed_by(&[0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 3]);
        assert_eq!(end_point(&ecdsa).unwrap().len(), 48);
        // RSA-PSS specifies its hash elsewhere; Ed25519 has none.
        assert_eq!(end_point(&rsa(10)), None);
        assert_eq!(end_point(&signed_by(&[0x2b, 0x65, 0x70])), None);
        for len in 0..ecdsa.len() {
            let _ = end_point(&ecdsa[..len]);
        }
    }
}

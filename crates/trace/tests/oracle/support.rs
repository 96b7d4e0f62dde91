use blockstone_trace::{Component, Options, Statement, Trace, TraceError, read};

pub fn try_read(text: impl AsRef<[u8]>) -> Result<Trace, TraceError> {
    read(text.as_ref(), Options { keep_text: true, ..Options::default() })
}

pub fn trace(text: impl AsRef<[u8]>) -> Trace {
    try_read(text).unwrap()
}

/// Header and text of a statement of depth 0.
pub fn parsing(cursor: u64, text: &str) -> String {
    parsing_with(cursor, text, text.len(), "4y53369cbbaqf")
}

pub fn parsing_with(cursor: u64, text: &str, len: usize, id: &str) -> String {
    format!(
        "=====================\n\
         PARSING IN CURSOR #{cursor} len={len} dep=0 uid=1 oct=3 lid=1 tim=100 hv=1 ad='6d' \
         sqlid='{id}'\n{text}\nEND OF STMT\n"
    )
}

/// A `FETCH` or similar call with the fields that matter.
pub fn call(kind: &str, cursor: u64, used: (u64, u64), depth: u32, tim: u64) -> String {
    let (c, e) = used;
    format!("{kind} #{cursor}:c={c},e={e},p=0,cr=0,cu=0,mis=0,r=1,dep={depth},og=1,tim={tim}\n")
}

pub fn wait(cursor: u64, event: &str, ela: i64, tim: u64) -> String {
    format!("WAIT #{cursor}: nam='{event}' ela= {ela} p1=1 p2=2 p3=3 obj#=-1 tim={tim}\n")
}

pub fn us(trace: &Trace, event: &str) -> f64 {
    let component = match event {
        "CPU" => Component::Cpu,
        "unaccounted" => Component::Unaccounted,
        _ => Component::Wait(event.to_owned()),
    };
    trace.components.get(&component).map_or(f64::NAN, |spent| spent.ns / 1000.0)
}

pub fn calls(trace: &Trace, event: &str) -> f64 {
    let spent = trace.components.get(&Component::Wait(event.to_owned()));
    spent.map_or(0.0, |spent| spent.calls)
}

pub fn statement<'a>(trace: &'a Trace, id: &str) -> &'a Statement {
    let ids: Vec<&str> = trace.statements.iter().map(|it| it.id.as_str()).collect();
    let found = trace.statements.iter().find(|it| it.id == id);
    found.unwrap_or_else(|| panic!("{id} is not among {ids:?}"))
}

pub fn has_note(trace: &Trace, words: &str) -> bool {
    trace.notes.iter().any(|note| note.contains(words))
}
